/* SPDX-License-Identifier: MIT
 *
 * See oneshot.h. SIGINT only sets a flag and makes an eventfd readable, which ends both waits of
 * this thread: for the ring, and for a reader that has stalled.
 */
#include "app/oneshot.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "app/cli.h"
#include "app/engine.h"
#include "app/json.h"

static volatile sig_atomic_t interrupted;
static int wake_fd = -1;

static void on_interrupt(int signo) {
    if (interrupted) {
        _exit(CLI_INTERRUPTED); /* the second time: at once */
    }
    interrupted = 1;
    int keep = errno;
    uint64_t one = 1;
    ssize_t ignored = write(wake_fd, &one, sizeof one);
    (void)ignored; /* a full eventfd wakes as well */
    errno = keep;
}

struct shot {
    struct app_settings *settings;
    const struct app_oneshot *opt;
    struct cw_generator *generator;
    bool terminal; /* standard output is one: control characters are made visible */
    bool started, cancelled;
    bool done;
    bool thought, answered;
    int status;
    uint32_t seed;
    struct cw_ids ids;
    struct cw_buf text, reasoning; /* for --json */
    struct cw_figures figures;
    enum cw_stop stop;
};

static void fail(struct shot *t, const char *what, int code, const char *why, size_t n) {
    struct cw_err e;
    cw_fail(&e, code, "%.*s", (int)n, why);
    t->status = cli_failed(what, &e);
    t->done = true;
}

/* ---- output --------------------------------------------------------------------------------- */

/* A reply is hostile input: on a terminal only its line ends and tabs act. */
static void put_visible(struct cw_buf *out, const char *text, size_t n) {
    char shown[CW_EVENT_TEXT * 10 + 1]; /* "\u{10ffff}" for one byte at the worst */
    for (size_t i = 0; i < n;) {
        size_t k = i;
        while (k < n && text[k] != '\n' && text[k] != '\t') {
            k++;
        }
        cw_buf_add(out, shown, cw_printable(shown, sizeof shown, text + i, k - i));
        if (k < n) {
            cw_buf_putc(out, text[k++]);
        }
        i = k;
    }
}

static void put_reply(struct shot *t, const struct cw_event *ev) {
    bool thinking = ev->u.token.thinking;
    t->thought = t->thought || (thinking && ev->n_text > 0);
    t->answered = t->answered || (!thinking && ev->n_text > 0);
    if (t->opt->json) {
        cw_buf_add(thinking ? &t->reasoning : &t->text, ev->text, ev->n_text);
    } else if (thinking) {
        return;
    } else if (t->terminal) {
        put_visible(cli_out(), ev->text, ev->n_text);
    } else {
        cw_buf_add(cli_out(), ev->text, ev->n_text);
    }
}

static void put_json(struct shot *t) {
    const struct cw_model_info *info = cw_generator_info(t->generator);
    const struct cw_figures *f = &t->figures;
    struct json_object *out = json_object_new_object();
    json_object_object_add(out, "text", app_json_text(t->text.data, t->text.len));
    if (t->reasoning.len) {
        json_object_object_add(out, "reasoning",
                               app_json_text(t->reasoning.data, t->reasoning.len));
    }
    json_object_object_add(out, "tokens", app_json_ids(t->ids.v, t->ids.n));
    json_object_object_add(out, "stop", json_object_new_string(cw_stop_name(t->stop)));
    json_object_object_add(out, "model", json_object_new_string(info ? info->name : ""));
    json_object_object_add(out, "seed", json_object_new_int64(t->seed));
    json_object_object_add(out, "prompt_tokens", json_object_new_int64((int64_t)f->n_prompt));
    json_object_object_add(out, "prompt_ms", app_json_number(f->prompt_s * 1e3));
    json_object_object_add(out, "ttft_ms", app_json_number(f->ttft_s * 1e3));
    json_object_object_add(out, "eval_ms", app_json_number(f->eval_s * 1e3));
    json_object_object_add(out, "tokens_per_s", app_json_number(f->tps));
    json_object_object_add(out, "context_used", json_object_new_int64((int64_t)f->n_ctx_used));
    json_object_object_add(out, "context", json_object_new_int64((int64_t)f->n_ctx));
    app_json_put(cli_out(), out, false);
}

static void finish(struct shot *t) {
    if (t->opt->json) {
        put_json(t);
    } else {
        cw_buf_putc(cli_out(), '\n');
    }
    if (t->stop == CW_STOP_CANCEL) {
        cli_drain_until(wake_fd);
        t->status = CLI_INTERRUPTED;
        t->done = true;
        return;
    }
    t->status = cli_finish();
    if (t->stop == CW_STOP_CONTEXT && t->status == CLI_OK) {
        cli_note("the reply was cut off: the context of %zu tokens is full", t->figures.n_ctx);
    }
    if (t->thought && !t->answered && t->status == CLI_OK) {
        cli_note("the reply ended while the model thought: there is no answer (--json has the "
                 "thought)");
    }
    t->done = true;
}

/* ---- the request ---------------------------------------------------------------------------- */

static void start(struct shot *t) {
    struct app_settings *s = t->settings;
    const struct app_oneshot *o = t->opt;
    struct cw_sampling recommended = s->sampling;
    struct cw_err err = {0};
    struct cw_message messages[2];
    struct cw_request req = {.max_tokens = s->n_predict,
                             .think = s->think,
                             .seed = t->seed,
                             .lookup = s->lookup != 0,
                             .lookup_all = s->lookup == 1};

    unsigned set = cw_generator_file_sampling(t->generator, &recommended);
    app_settings_from_file(s, set, &recommended);
    cw_generator_publish(t->generator, &s->sampling);

    if (cw_generator_has_template(t->generator)) {
        size_t n = 0;
        if (s->system) {
            messages[n++] = (struct cw_message){
                .role = "system", .content = s->system, .len = strlen(s->system)};
        }
        messages[n++] =
            (struct cw_message){.role = "user", .content = o->prompt, .len = o->prompt_len};
        req.messages = messages;
        req.n_messages = n;
    } else {
        if (s->system) {
            cli_note("this model has no chat template: the system prompt is left out");
        }
        req.raw = o->prompt;
        req.raw_len = o->prompt_len;
    }
    req.stops = (const char *const *)s->stops;
    while (s->stops && s->stops[req.n_stops]) {
        req.n_stops++;
    }
    if (cw_generator_start(t->generator, &req, NULL, &err) != CW_OK) {
        t->status = cli_failed("", &err);
        t->done = true;
    }
    t->started = true;
}

static void on_event(struct shot *t, const struct cw_event *ev) {
    switch (ev->kind) {
    case CW_EV_READY:
        start(t);
        break;
    case CW_EV_FAILED:
        fail(t, "", ev->u.done.code, ev->text, ev->n_text);
        break;
    case CW_EV_NOTICE:
        cli_note("%.*s", (int)ev->n_text, ev->text);
        break;
    case CW_EV_TOKEN:
        if (ev->u.token.first_part) {
            cw_ids_add(&t->ids, ev->u.token.draw.id);
        }
        put_reply(t, ev);
        break;
    case CW_EV_DONE:
        t->figures = ev->figures;
        t->stop = ev->u.done.stop;
        if (t->stop == CW_STOP_ERROR) {
            cli_finish(); /* what came of the reply */
            fail(t, "", ev->u.done.code, ev->text, ev->n_text);
        } else {
            finish(t);
        }
        break;
    case CW_EV_LOADING:
    case CW_EV_PROMPT:
    case CW_EV_PROGRESS:
    case CW_EV_CHANGE:
    case CW_EV_COUNT:
    case CW_EV_REPLY_DONE:
        break;
    }
}

static void loop(struct shot *t) {
    struct cw_ring *ring = cw_generator_ring(t->generator);
    struct cw_event ev;
    while (!t->done) {
        struct pollfd fds[2] = {{.fd = cw_ring_fd(ring), .events = POLLIN},
                                {.fd = t->cancelled ? -1 : wake_fd, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0 && errno != EINTR) {
            fail(t, "poll", CW_EIO, strerror(errno), 200);
            return;
        }
        if (interrupted && !t->cancelled) {
            t->cancelled = true;
            if (!t->started) {
                t->status = CLI_INTERRUPTED; /* still loading: nothing to wait for */
                return;
            }
            cw_generator_cancel(t->generator);
        }
        cw_ring_ack(ring);
        while (!t->done && cw_ring_pop(ring, &ev)) {
            on_event(t, &ev);
        }
        /* Text is shown as it comes, a drain at a time. */
        if (!t->done && !cli_drain_until(wake_fd)) {
            t->status = CLI_FAILED;
            return;
        }
    }
}

int app_oneshot_run(struct app_settings *s, const struct app_oneshot *o) {
    struct shot t = {.settings = s, .opt = o, .terminal = isatty(STDOUT_FILENO)};
    struct cw_err err = {0};
    t.seed = cli_seed(s);
    wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wake_fd < 0) {
        cw_fail(&err, CW_EIO, "%s", strerror(errno));
        return cli_failed("eventfd", &err);
    }
    if (signal(SIGINT, on_interrupt) == SIG_IGN) {
        signal(SIGINT, SIG_IGN); /* as under nohup */
    }
    const struct cw_generator_options opt =
        app_generator_options(s, o->model_path, o->chat_template);
    if (cw_generator_create(&t.generator, &opt, &s->sampling, &err) == CW_OK) {
        loop(&t);
    } else {
        t.status = cli_failed("", &err);
    }
    cw_generator_destroy(t.generator);
    signal(SIGINT, SIG_DFL);
    close(wake_fd);
    cw_ids_free(&t.ids);
    cw_buf_free(&t.text);
    cw_buf_free(&t.reasoning);
    return t.status;
}
