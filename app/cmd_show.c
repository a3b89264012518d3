/* SPDX-License-Identifier: MIT
 *
 * Pages about the model, the settings and the last reply.
 */
#include "app/cmd.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/gguf.h"

void cmd_line(struct ui_overlay *page, const char *key, const char *fmt, ...) {
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ui_overlay_line(page, key, text);
}

static void page_info(struct app *a) {
    const struct cw_model_info *m = app_model_info(a);
    if (m == NULL) {
        app_hint(a, true, "no model is loaded");
        return;
    }
    struct ui_overlay *page = ui_overlay_create("Model");
    cmd_line(page, "name", "%s", m->name);
    cmd_line(page, "file", "%s", a->settings->model ? a->settings->model : "");
    cmd_line(page, "architecture", "%s, %d layers, width %d, %d heads (%d for keys), vocabulary %d",
             m->arch, m->n_layers, m->n_embd, m->n_heads, m->n_kv_heads, m->n_vocab);
    cmd_line(page, "parameters", "%.1f million, %s, %.1f MB of weights", (double)m->n_params / 1e6,
             m->quant, (double)m->weight_bytes / 1e6);
    if (a->status.n_ctx > 0) {
        cmd_line(page, "context", "%zu of %zu tokens used", a->status.ctx_used, a->status.n_ctx);
    }
    cmd_line(page, "trained on", "%u tokens, %.1f kB of cache each", m->n_ctx_train,
             (double)m->kv_bytes_token / 1e3);
    cmd_line(page, "template", "%s",
             cw_generator_has_template(a->generator) ? "yes: /show template" : "none");
    cmd_line(page, "threads", "%d, %s kernels%s", m->n_threads, cw_isa_name(m->isa),
             m->blas ? ", OpenBLAS for prompts" : "");
    cmd_line(page, "exact", "%s",
             m->exact ? "yes: the same bits for every thread count, chunk and cache reuse"
                      : "no: prompts of a float file go through OpenBLAS (--exact changes it)");
    app_show_page(a, page);
}

static void page_text(struct app *a, const char *title, const char *text, size_t n) {
    struct ui_overlay *page = ui_overlay_create(title);
    char *copy = cw_strndup(text, n);
    ui_overlay_line(page, "", copy);
    free(copy);
    app_show_page(a, page);
}

static void page_template(struct app *a) {
    const char *given = a->settings->chat_template;
    if (given != NULL && given[0] != '\0') {
        page_text(a, "Chat template (given)", given, strlen(given));
        return;
    }
    struct cw_gguf *file;
    struct cw_err err = {0};
    struct cw_str source;
    if (cw_gguf_open(&file, a->settings->model, &err) != CW_OK) {
        app_hint(a, true, "%s", err.text);
        return;
    }
    if (cw_gguf_str(file, "tokenizer.chat_template", &source, &err) == CW_OK) {
        page_text(a, "Chat template (of the model's file)", source.data, source.len);
    } else {
        app_hint(a, false, "the model's file has no chat template");
    }
    cw_gguf_close(file);
}

void cmd_run_show(struct app *a, const char *args) {
    struct cw_str what = cmd_take_word(&args);
    if (what.len == 0 || cw_str_eq(what, "info")) {
        page_info(a);
    } else if (cw_str_eq(what, "settings") || cw_str_eq(what, "parameters")) {
        cmd_page_settings(a);
    } else if (cw_str_eq(what, "system")) {
        const char *system = a->settings->system ? a->settings->system : "";
        page_text(a, "System prompt", system[0] ? system : "(none)",
                  strlen(system[0] ? system : "(none)"));
    } else if (cw_str_eq(what, "template")) {
        page_template(a);
    } else {
        const struct app_option *o = cmd_find_option(what);
        if (o != NULL) {
            cmd_show_setting(a, o);
        } else {
            app_hint(a, true, "/show knows info, settings, system, template and the settings");
        }
    }
}

void cmd_complete_show(const struct app *a, const char *line, size_t begin,
                       struct ui_candidates *out) {
    static const char *const words[] = {"info", "settings", "system", "template"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        ui_candidates_add(out, words[i]);
    }
    for (size_t i = 0; i < app_n_options; i++) {
        ui_candidates_add(out, app_options[i].name);
    }
}

void cmd_changes(struct ui_overlay *page, const struct chat_message *m) {
    for (size_t i = 0; i < m->n_changes; i++) {
        struct cw_buf label = {0};
        chat_change_label(&m->changes[i].from, &m->changes[i].to, &label);
        cmd_line(page, i == 0 ? "changes" : "", "%s at token %llu", label.data ? label.data : "",
                 (unsigned long long)m->changes[i].token);
        cw_buf_free(&label);
    }
}

static const char *ended_by(enum cw_stop stop) {
    static const char *const words[] = {
        [CW_STOP_EOG] = "the model was done",
        [CW_STOP_STRING] = "at a text of /set stop",
        [CW_STOP_LENGTH] = "at the longest length (/set predict)",
        [CW_STOP_CONTEXT] = "the context is full",
        [CW_STOP_CANCEL] = "you stopped it",
        [CW_STOP_ERROR] = "by an error",
    };
    return (size_t)stop < sizeof words / sizeof words[0] ? words[stop] : "?";
}

void cmd_figures(struct ui_overlay *page, const struct chat_message *m) {
    const struct cw_figures *f = &m->figures;
    cmd_line(page, "time to first token", "%.1f ms", f->ttft_s * 1e3);
    cmd_line(page, "prompt", "%zu tokens: %zu from the cache, %zu evaluated", f->n_prompt,
             f->n_reused, f->n_evaluated);
    cmd_line(page, "reading the prompt", "%.1f ms, %.1f tokens/s", f->prompt_s * 1e3,
             f->prompt_s > 0 ? (double)f->n_evaluated / f->prompt_s : 0);
    cmd_line(page, "reply", "%zu tokens", f->n_tokens);
    cmd_line(page, "writing the reply", "%.1f ms, %.2f tokens/s", f->eval_s * 1e3, f->tps);
    cmd_line(page, "context", "%zu of %zu tokens", f->n_ctx_used, f->n_ctx);
    cmd_line(page, "ended", "%s", ended_by(m->stop));
}

void cmd_run_stats(struct app *a, const char *args) {
    const struct chat_message *m = NULL; /* the one under way has no figures yet */
    for (size_t i = a->chat.n; i-- > 0 && m == NULL;) {
        const struct chat_message *c = a->chat.messages[i];
        m = c->role == CHAT_REPLY && c->done ? c : NULL;
    }
    if (m == NULL) {
        app_hint(a, true, "no reply is finished yet");
        return;
    }
    struct ui_overlay *page = ui_overlay_create("The last reply");
    cmd_figures(page, m);
    if (m->n_runs > 0) {
        cmd_line(page, "seed", "%u", m->seed);
    }
    cmd_changes(page, m);
    app_show_page(a, page);
}
