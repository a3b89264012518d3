/* SPDX-License-Identifier: MIT
 *
 * The table of commands and what they do. Names follow the field (llama-cli, Ollama): who knows one
 * of them finds the same words here.
 */
#include "app/commands.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "app/app_impl.h"
#include "chinwag/gguf.h"
#include "ui/keymap.h"

enum { MAX_READ = 4 * 1024 * 1024, MAX_WORD = 64 };

/* ---- words ---------------------------------------------------------------------------------- */

/* The first word of *s, which moves behind it and the blanks that follow. */
static struct cw_str take_word(const char **s) {
    const char *start = *s + strspn(*s, " \t\n");
    size_t n = strcspn(start, " \t\n");
    *s = start + n + strspn(start + n, " \t\n");
    return (struct cw_str){start, n};
}

/* Whether one of the space-separated names is word[0..n). */
static bool has_name(const char *names, const char *word, size_t n) {
    while (*names != '\0') {
        size_t length = strcspn(names, " ");
        if (length == n && memcmp(names, word, n) == 0) {
            return true;
        }
        names += length + (names[length] == ' ');
    }
    return false;
}

static const struct app_option *find_option(struct cw_str word) {
    char name[MAX_WORD];
    snprintf(name, sizeof name, "%.*s", (int)word.len, word.data);
    const struct app_option *o = app_option_find(name);
    if (o == NULL && word.len + 2 < sizeof name) {
        snprintf(name, sizeof name, "--%.*s", (int)word.len, word.data);
        o = app_option_find(name); /* "temperature": the long spelling of a flag */
    }
    return o;
}

/* ---- leaving, beginning, repeating ---------------------------------------------------------- */

static void run_exit(struct app *a, const char *args) {
    a->leave = true;
}

static void run_help(struct app *a, const char *args) {
    app_show_help(a);
}

static void run_new(struct app *a, const char *args) {
    app_new_chat(a);
}

static void run_regen(struct app *a, const char *args) {
    app_regenerate(a);
}

static void run_continue(struct app *a, const char *args) {
    app_continue(a);
}

static void run_undo(struct app *a, const char *args) {
    app_undo(a);
}

static void run_stop(struct app *a, const char *args) {
    if (!app_cancel(a)) {
        app_hint(a, false, "no reply is under way");
    }
}

/* ---- settings ------------------------------------------------------------------------------- */

static void show_setting(struct app *a, const struct app_option *o) {
    char *value = app_settings_get(a->settings, o);
    app_hint(a, false, "%s %s (%s)", o->name, value[0] != '\0' ? value : "(none)",
             app_origin_name(app_settings_origin(a->settings, o)));
    free(value);
}

static void page_settings(struct app *a) {
    struct ui_overlay *page = ui_overlay_create("Settings");
    const char *group = "";
    for (size_t i = 0; i < app_n_options; i++) {
        const struct app_option *o = &app_options[i];
        if (strcmp(group, o->group) != 0) {
            group = o->group;
            ui_overlay_line(page, "", "");
            ui_overlay_heading(page, group);
        }
        struct cw_buf line = {0};
        char *value = app_settings_get(a->settings, o);
        cw_buf_printf(&line, "%s  (%s%s)", value[0] != '\0' ? value : "-",
                      app_origin_name(app_settings_origin(a->settings, o)),
                      o->where & APP_ON_SET ? "" : "; fixed once the model is loaded");
        ui_overlay_line(page, o->name, line.data);
        free(value);
        cw_buf_free(&line);
    }
    app_show_page(a, page);
}

static void set_option(struct app *a, const struct app_option *o, const char *value) {
    struct cw_err err = {0};
    if (!(o->where & APP_ON_SET)) {
        app_hint(a, true, "%s is decided before the model is loaded: start again with --%s",
                 o->name, o->name);
        return;
    }
    if (app_settings_set(a->settings, o, value, APP_LIVE, &err) != CW_OK) {
        app_hint(a, true, "%s", err.text);
        return;
    }
    app_publish(a);
    show_setting(a, o);
}

static void run_set(struct app *a, const char *args) {
    struct cw_str name = take_word(&args);
    if (name.len == 0) {
        page_settings(a);
        return;
    }
    if (cw_str_eq(name, "parameter") && *args != '\0') {
        name = take_word(&args); /* as Ollama has it */
    }
    const char *equals = memchr(name.data, '=', name.len);
    if (equals != NULL) {
        args = equals + 1;
        name.len = (size_t)(equals - name.data);
    }
    const struct app_option *o = find_option(name);
    if (o == NULL) {
        app_hint(a, true, "there is no setting %.*s: /set lists them", (int)name.len, name.data);
    } else if (*args == '\0' && equals == NULL) {
        show_setting(a, o);
    } else {
        size_t n = strlen(args);
        while (n > 0 && strchr(" \t\n", args[n - 1]) != NULL) {
            n--;
        }
        char *value = cw_strndup(args, n);
        set_option(a, o, value);
        free(value);
    }
}

static void complete_set(const struct app *a, const char *line, size_t begin,
                         struct ui_candidates *out) {
    const char *rest = line;
    take_word(&rest); /* the command */
    struct cw_str name = take_word(&rest);
    if (begin <= (size_t)(name.data - line)) {
        for (size_t i = 0; i < app_n_options; i++) {
            if (app_options[i].where & APP_ON_SET) {
                ui_candidates_add(out, app_options[i].name);
            }
        }
        return;
    }
    const struct app_option *o = find_option(name);
    if (o == NULL) {
        return;
    }
    char *now = app_settings_get(a->settings, o);
    if (o->kind == APP_BOOL) {
        ui_candidates_add(out, "on");
        ui_candidates_add(out, "off");
    } else if (o->choices != NULL) {
        for (const char *c = o->choices; *c != '\0';) {
            char word[MAX_WORD];
            size_t n = strcspn(c, " ");
            snprintf(word, sizeof word, "%.*s", (int)n, c);
            ui_candidates_add(out, word);
            c += n + (c[n] == ' ');
        }
    } else if (now[0] != '\0') {
        ui_candidates_add(out, now); /* to be changed rather than typed anew */
    }
    free(now);
}

static void run_system(struct app *a, const char *args) {
    const struct app_option *o = app_option_find("system");
    if (*args == '\0') {
        const char *now = a->settings->system;
        app_hint(a, false, "system prompt: %s", now && now[0] ? now : "(none)");
        return;
    }
    set_option(a, o, args);
}

/* ---- showing -------------------------------------------------------------------------------- */

static void line_printf(struct ui_overlay *page, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void line_printf(struct ui_overlay *page, const char *key, const char *fmt, ...) {
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
    line_printf(page, "name", "%s", m->name);
    line_printf(page, "file", "%s", a->settings->model ? a->settings->model : "");
    line_printf(page, "architecture",
                "%s, %d layers, width %d, %d heads (%d for keys), vocabulary %d", m->arch,
                m->n_layers, m->n_embd, m->n_heads, m->n_kv_heads, m->n_vocab);
    line_printf(page, "parameters", "%.1f million, %s, %.1f MB of weights",
                (double)m->n_params / 1e6, m->quant, (double)m->weight_bytes / 1e6);
    if (a->status.n_ctx > 0) {
        line_printf(page, "context", "%zu of %zu tokens used", a->status.ctx_used, a->status.n_ctx);
    }
    line_printf(page, "trained on", "%u tokens, %.1f kB of cache each", m->n_ctx_train,
                (double)m->kv_bytes_token / 1e3);
    line_printf(page, "template", "%s",
                cw_generator_has_template(a->generator) ? "yes: /show template" : "none");
    line_printf(page, "threads", "%d, %s kernels%s", m->n_threads, cw_isa_name(m->isa),
                m->blas ? ", OpenBLAS for prompts" : "");
    line_printf(page, "exact", "%s",
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

static void run_show(struct app *a, const char *args) {
    struct cw_str what = take_word(&args);
    if (what.len == 0 || cw_str_eq(what, "info")) {
        page_info(a);
    } else if (cw_str_eq(what, "settings") || cw_str_eq(what, "parameters")) {
        page_settings(a);
    } else if (cw_str_eq(what, "system")) {
        const char *system = a->settings->system ? a->settings->system : "";
        page_text(a, "System prompt", system[0] ? system : "(none)",
                  strlen(system[0] ? system : "(none)"));
    } else if (cw_str_eq(what, "template")) {
        page_template(a);
    } else {
        const struct app_option *o = find_option(what);
        if (o != NULL) {
            show_setting(a, o);
        } else {
            app_hint(a, true, "/show knows info, settings, system, template and the settings");
        }
    }
}

static void complete_show(const struct app *a, const char *line, size_t begin,
                          struct ui_candidates *out) {
    static const char *const words[] = {"info", "settings", "system", "template"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        ui_candidates_add(out, words[i]);
    }
    for (size_t i = 0; i < app_n_options; i++) {
        ui_candidates_add(out, app_options[i].name);
    }
}

static void run_stats(struct app *a, const char *args) {
    const struct chat_message *m = NULL; /* the one under way has no figures yet */
    for (size_t i = a->chat.n; i-- > 0 && m == NULL;) {
        const struct chat_message *c = &a->chat.messages[i];
        m = c->role == CHAT_REPLY && c->done ? c : NULL;
    }
    if (m == NULL) {
        app_hint(a, true, "no reply is finished yet");
        return;
    }
    const struct cw_figures *f = &m->figures;
    struct ui_overlay *page = ui_overlay_create("The last reply");
    line_printf(page, "time to first token", "%.1f ms", f->ttft_s * 1e3);
    line_printf(page, "prompt", "%zu tokens: %zu reused, %zu evaluated", f->n_prompt, f->n_reused,
                f->n_evaluated);
    line_printf(page, "prompt eval duration", "%.1f ms", f->prompt_s * 1e3);
    if (f->prompt_s > 0) {
        line_printf(page, "prompt eval rate", "%.1f tokens/s",
                    (double)f->n_evaluated / f->prompt_s);
    }
    line_printf(page, "eval count", "%zu tokens", f->n_tokens);
    line_printf(page, "eval duration", "%.1f ms", f->eval_s * 1e3);
    line_printf(page, "eval rate", "%.2f tokens/s", f->tps);
    line_printf(page, "context", "%zu of %zu tokens", f->n_ctx_used, f->n_ctx);
    line_printf(page, "stop", "%s", cw_stop_name(m->stop));
    line_printf(page, "seed", "%u", m->seed);
    for (size_t i = 0; i < m->n_changes; i++) {
        struct cw_buf label = {0};
        chat_change_label(&m->changes[i].from, &m->changes[i].to, &label);
        line_printf(page, i == 0 ? "changes" : "", "%s at token %llu", label.data ? label.data : "",
                    (unsigned long long)m->changes[i].token);
        cw_buf_free(&label);
    }
    app_show_page(a, page);
}

/* ---- files ---------------------------------------------------------------------------------- */

static void run_read(struct app *a, const char *args) {
    size_t n = strlen(args);
    while (n > 0 && strchr(" \t\n", args[n - 1]) != NULL) {
        n--;
    }
    char *path = cw_strndup(args, n);
    struct stat st;
    FILE *f = NULL;
    if (n == 0) {
        app_hint(a, true, "/read FILE: which file?");
    } else if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || (f = fopen(path, "re")) == NULL) {
        app_hint(a, true, "cannot be read: %s", path);
    } else {
        char *text = cw_malloc(MAX_READ);
        size_t got = fread(text, 1, MAX_READ, f);
        ui_input_paste(text, got);
        if (got == MAX_READ) {
            app_hint(a, true, "only the first %d MiB were taken", MAX_READ / 1024 / 1024);
        }
        free(text);
    }
    if (f != NULL) {
        fclose(f);
    }
    free(path);
}

static void complete_file(const struct app *a, const char *line, size_t begin,
                          struct ui_candidates *out) {
    out->files = true;
}

/* ---- the table ------------------------------------------------------------------------------ */

static const struct app_command commands[] = {
    {"help ?", "", "Show the keys and commands.", run_help, NULL},
    {"exit bye quit", "", "Leave.", run_exit, NULL},
    {"new clear", "", "Begin a new conversation; the system prompt stays.", run_new, NULL},
    {"regen retry", "", "Throw the last reply away and ask for another.", run_regen, NULL},
    {"continue", "", "Let the last reply go on where it ended.", run_continue, NULL},
    {"undo", "", "Take the last question back into the input line, its reply away.", run_undo,
     NULL},
    {"stop", "", "Stop the reply and keep what came.", run_stop, NULL},
    {"set", "[NAME [VALUE]]", "Change a setting; without VALUE show it, without NAME list all.",
     run_set, complete_set},
    {"show", "[info|settings|system|template|NAME]", "Show the model, the settings or one of them.",
     run_show, complete_show},
    {"system", "[TEXT]", "Set the system prompt, or show it.", run_system, NULL},
    {"stats", "", "Show the figures of the last reply.", run_stats, NULL},
    {"read", "FILE", "Put the text of a file into the input line.", run_read, complete_file},
};

const struct app_command *app_command_at(size_t i) {
    return i < sizeof commands / sizeof commands[0] ? &commands[i] : NULL;
}

const struct app_command *app_command_find(const char *name, size_t n) {
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (has_name(commands[i].names, name, n)) {
            return &commands[i];
        }
    }
    return NULL;
}

bool app_is_command(const char *line) {
    if (line[0] != '/') {
        return false;
    }
    size_t n = strcspn(line, " \t\n");
    if (app_command_find(line + 1, n - 1) != NULL) {
        return true;
    }
    char *path = cw_strndup(line, n);
    struct stat st;
    bool is_file = n > 1 && stat(path, &st) == 0;
    free(path);
    return !is_file;
}

/* Edits (a letter more, less, other, or two swapped) between two short words. */
static int distance(const char *a, size_t n_a, const char *b, size_t n_b) {
    enum { LONGEST = 24 };
    int d[LONGEST + 1][LONGEST + 1];
    if (n_a > LONGEST || n_b > LONGEST) {
        return LONGEST;
    }
    for (size_t i = 0; i <= n_a; i++) {
        for (size_t k = 0; k <= n_b; k++) {
            if (i == 0 || k == 0) {
                d[i][k] = (int)(i + k);
                continue;
            }
            int best = d[i - 1][k - 1] + (a[i - 1] != b[k - 1]);
            best = d[i - 1][k] + 1 < best ? d[i - 1][k] + 1 : best;
            best = d[i][k - 1] + 1 < best ? d[i][k - 1] + 1 : best;
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1] &&
                d[i - 2][k - 2] + 1 < best) {
                best = d[i - 2][k - 2] + 1;
            }
            d[i][k] = best;
        }
    }
    return d[n_a][n_b];
}

static void hint_nearest(struct app *a, const char *word, size_t n) {
    const char *nearest = NULL;
    size_t n_nearest = 0;
    int best = 3; /* farther is another word */
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        for (const char *name = commands[i].names; *name != '\0';) {
            size_t length = strcspn(name, " ");
            int d = distance(word, n, name, length);
            if (d < best && (size_t)d < length) {
                best = d;
                nearest = name;
                n_nearest = length;
            }
            name += length + (name[length] == ' ');
        }
    }
    char shown[80];
    cw_printable(shown, sizeof shown, word, n < 40 ? n : 40);
    if (nearest != NULL) {
        app_hint(a, true, "there is no command /%s: did you mean /%.*s?", shown, (int)n_nearest,
                 nearest);
    } else {
        app_hint(a, true, "there is no command /%s: /help lists them", shown);
    }
}

void app_command_run(struct app *a, const char *line) {
    const char *args = line + 1;
    struct cw_str name = {args, strcspn(args, " \t\n")};
    args += name.len;
    args += strspn(args, " \t\n");
    const struct app_command *c = app_command_find(name.data, name.len);
    if (c == NULL) {
        hint_nearest(a, name.data, name.len);
    } else if (c->args[0] == '\0' && *args != '\0') {
        app_hint(a, true, "/%.*s takes no argument", (int)name.len, name.data);
    } else {
        c->run(a, args);
    }
    a->dirty = true;
}

void app_complete(void *app, const char *line, size_t begin, size_t end,
                  struct ui_candidates *out) {
    const struct app *a = app;
    if (line[0] != '/') {
        out->files = true;
        return;
    }
    if (begin == 0) {
        for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
            for (const char *name = commands[i].names; *name != '\0';) {
                char word[MAX_WORD];
                size_t n = strcspn(name, " ");
                snprintf(word, sizeof word, "/%.*s", (int)n, name);
                ui_candidates_add(out, word);
                name += n + (name[n] == ' ');
            }
        }
        return;
    }
    size_t n = strcspn(line, " \t\n");
    const struct app_command *c = app_command_find(line + 1, n - 1);
    if (c == NULL) {
        out->files = true;
    } else if (c->complete != NULL) {
        c->complete(a, line, begin, out);
    }
}

void app_show_help(struct app *a) {
    struct ui_overlay *page = ui_overlay_create("Help");
    ui_overlay_heading(page, "Keys");
    ui_overlay_line(page, "Enter", "send the message; during a reply it waits for its turn");
    for (size_t i = 0; ui_keymap_at(i) != NULL;) {
        enum ui_action action = ui_keymap_at(i)->action;
        struct cw_buf keys = {0};
        for (; ui_keymap_at(i) != NULL && ui_keymap_at(i)->action == action; i++) {
            char name[32];
            ui_key_name(ui_keymap_at(i)->code, ui_keymap_at(i)->mods, name, sizeof name);
            cw_buf_printf(&keys, "%s%s", keys.len > 0 ? ", " : "", name);
        }
        ui_overlay_line(page, keys.data, ui_action_help(action));
        cw_buf_free(&keys);
    }
    ui_overlay_line(page, "", "");
    ui_overlay_line(page, "",
                    "All other keys are readline's, with ~/.inputrc: Tab completes, Ctrl+R "
                    "searches what was sent before, Up and Down go through it.");
    ui_overlay_line(page, "", "");
    ui_overlay_heading(page, "Commands");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        struct cw_buf key = {0};
        for (const char *name = commands[i].names; *name != '\0';) {
            size_t n = strcspn(name, " ");
            cw_buf_printf(&key, "%s/%.*s", key.len > 0 ? " " : "", (int)n, name);
            name += n + (name[n] == ' ');
        }
        if (commands[i].args[0] != '\0') {
            cw_buf_printf(&key, " %s", commands[i].args);
        }
        ui_overlay_line(page, key.data, commands[i].help);
        cw_buf_free(&key);
    }
    ui_overlay_line(page, "", "");
    ui_overlay_line(page, "",
                    "A line that ends in \\ goes on with the next; \"\"\" opens and closes a "
                    "message of many lines. A slash before the name of a file is text.");
    app_show_page(a, page);
}
