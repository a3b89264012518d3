/* SPDX-License-Identifier: MIT
 *
 * chinwag conversations, export, import, delete, forget: what is stored, without a chat.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/cli.h"
#include "app/exchange.h"
#include "app/json.h"
#include "app/keep.h"
#include "chinwag/snapshot.h"
#include "ui/history.h"

enum {
    LIST_LIMIT = 1000000,
    SNIPPET_COLUMNS = 70,
    IMPORT_AHEAD = 8 << 20 /* bytes queued before the disk is waited for */
};

/* ---- the store ------------------------------------------------------------------------------ */

static struct cw_store *open_store(struct cli *c, int *status) {
    struct cw_store *s = NULL;
    struct cw_err err = {0};
    if (app_keep_open(&s, &c->paths, SIZE_MAX / 2, &err) != CW_OK) {
        *status = cli_failed("conversations", &err);
    }
    return s;
}

/* What the store had to say besides the answer. */
static void tell_notices(struct cw_store *s) {
    for (struct cw_store_event *ev; (ev = cw_store_next(s)) != NULL;) {
        if (ev->kind == CW_STORE_NOTICE || ev->kind == CW_STORE_MENDED) {
            cli_note("%s", ev->text);
        }
        cw_store_event_free(ev);
    }
}

static int close_store(struct cw_store *s, int status) {
    struct cw_err err = {0};
    tell_notices(s);
    if (cw_store_destroy(s, &err) != CW_OK && status == CLI_OK) {
        return cli_failed("conversations", &err);
    }
    return status;
}

/* The answer to a question, or NULL after telling why there is none. */
static struct cw_store_event *answer(struct cw_store *s, uint64_t serial, int *status) {
    struct cw_store_event *ev = cw_store_wait(s, serial);
    if (ev->kind == CW_STORE_FAILED) {
        struct cw_err err;
        cw_fail(&err, ev->code, "%s", ev->text);
        *status = cli_failed("conversations", &err);
        cw_store_event_free(ev);
        return NULL;
    }
    return ev;
}

/* ---- conversations -------------------------------------------------------------------------- */

static void put_printable(struct cw_buf *out, struct cw_str text, size_t most) {
    char line[512];
    size_t n = cw_printable(line, most < sizeof line ? most : sizeof line,
                            text.data != NULL ? text.data : "", text.len);
    cw_buf_add(out, line, n);
}

static void put_date(struct cw_buf *out, int64_t ms) {
    char text[32] = "";
    time_t when = (time_t)(ms / 1000);
    struct tm tm;
    if (localtime_r(&when, &tm) != NULL) {
        strftime(text, sizeof text, "%Y-%m-%d %H:%M", &tm);
    }
    cw_buf_puts(out, text);
}

static void hit_line(const struct cw_store_hit *hit, bool searched) {
    struct cw_buf *out = cli_out();
    char name[CW_STORE_NAME];
    cw_store_name(hit->conversation.id, name);
    cw_buf_printf(out, "%s  ", name);
    put_date(out, hit->conversation.updated_ms);
    cw_buf_printf(out, "  %4zu  ", hit->conversation.n_messages);
    put_printable(out, hit->conversation.title, 200);
    if (hit->conversation.model.len > 0) {
        cw_buf_puts(out, "  (");
        put_printable(out, hit->conversation.model, 100);
        cw_buf_putc(out, ')');
    }
    cw_buf_putc(out, '\n');
    if (searched && hit->snippet.len > 0) {
        cw_buf_printf(out, "%15s", "");
        put_printable(out, hit->snippet, SNIPPET_COLUMNS);
        cw_buf_putc(out, '\n');
    }
}

static struct json_object *hit_json(const struct cw_store_hit *hit) {
    struct json_object *o = json_object_new_object();
    char name[CW_STORE_NAME];
    const struct cw_store_conversation *c = &hit->conversation;
    cw_store_name(c->id, name);
    json_object_object_add(o, "id", json_object_new_string(name));
    json_object_object_add(o, "title", app_json_text(c->title.data, c->title.len));
    json_object_object_add(o, "model", app_json_text(c->model.data, c->model.len));
    json_object_object_add(o, "created_ms", json_object_new_int64(c->created_ms));
    json_object_object_add(o, "updated_ms", json_object_new_int64(c->updated_ms));
    json_object_object_add(o, "messages", json_object_new_int64((int64_t)c->n_messages));
    if (hit->snippet.len > 0) {
        json_object_object_add(o, "snippet", app_json_text(hit->snippet.data, hit->snippet.len));
    }
    return o;
}

static int run_conversations(struct cli *c) {
    struct cw_buf query = {0};
    int status = CLI_OK;
    if (c->operand && strcmp(c->operand, "search") != 0) {
        return cli_usage(c, "%s: only 'search TEXT' can follow", c->operand);
    }
    if (c->operand && c->n_more == 0) {
        return cli_usage(c, "search: TEXT is missing");
    }
    for (size_t i = 0; i < c->n_more; i++) {
        cw_buf_printf(&query, "%s%s", i > 0 ? " " : "", c->more[i]);
    }
    struct cw_store *s = open_store(c, &status);
    if (!s) {
        cw_buf_free(&query);
        return status;
    }
    cw_store_list(s, query.data, LIST_LIMIT, 1);
    struct cw_store_event *ev = answer(s, 1, &status);
    if (ev && cli_has(c, "--json")) {
        struct json_object *list = json_object_new_array();
        for (size_t i = 0; i < ev->n_hits; i++) {
            json_object_array_add(list, hit_json(&ev->hits[i]));
        }
        app_json_put(cli_out(), list, true);
    } else if (ev) {
        for (size_t i = 0; i < ev->n_hits; i++) {
            hit_line(&ev->hits[i], query.len > 0);
        }
        if (ev->n_hits == 0) {
            cli_note(query.len > 0 ? "no conversation has that in it" : "no conversations yet");
        }
    }
    cw_store_event_free(ev);
    cw_buf_free(&query);
    status = close_store(s, status);
    return status == CLI_OK ? cli_finish() : status;
}

static const struct cli_flag conversations_flags[] = {
    {"--json", NULL, "Print a list of objects."},
};

const struct cli_command cli_conversations = {
    .name = "conversations",
    .synopsis = "[search TEXT] [--json]",
    .summary = "List the stored conversations, the latest first, or those with TEXT in a message, "
               "the title, the model, the name or the date.",
    .operand = "search TEXT",
    .n_more = CLI_MAX_MORE,
    .options = "",
    .flags = conversations_flags,
    .n_flags = sizeof conversations_flags / sizeof *conversations_flags,
    .run = run_conversations,
};

/* ---- export --------------------------------------------------------------------------------- */

/* A new file, or over an old one in one step: never half of one. */
static int write_out(const char *path, const struct cw_buf *text, struct cw_err *err) {
    struct cw_buf temporary = {0};
    cw_buf_printf(&temporary, "%s.XXXXXX", path);
    int fd = mkostemp(temporary.data, O_CLOEXEC);
    int why = fd < 0 ? errno : 0;
    for (size_t at = 0; fd >= 0 && why == 0 && at < text->len;) {
        ssize_t n = write(fd, text->data + at, text->len - at);
        if (n < 0 && errno != EINTR) {
            why = errno;
        }
        at += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0) {
        why = close(fd) != 0 && why == 0 ? errno : why;
        if (why == 0 && rename(temporary.data, path) != 0) {
            why = errno;
        }
        if (why != 0) {
            unlink(temporary.data);
        }
    }
    cw_buf_free(&temporary);
    return why == 0 ? CW_OK : cw_fail(err, CW_EIO, "%s: %s", path, strerror(why));
}

static int run_export(struct cli *c) {
    enum app_format format = APP_FORMAT_MD;
    const char *name = cli_value(c, "--format");
    int status = CLI_OK;
    if (name && !app_format_find(name, &format)) {
        return cli_usage(c, "--format: '%s' is none of md, json, jsonl, txt, html", name);
    }
    if (!c->operand || !*c->operand) {
        return cli_usage(c, "ID is missing (see chinwag conversations)");
    }
    struct cw_store *s = open_store(c, &status);
    if (!s) {
        return status;
    }
    cw_store_load_name(s, c->operand, false, 1);
    struct cw_store_event *ev = answer(s, 1, &status);
    if (ev) {
        struct cw_buf text = {0};
        struct cw_err err = {0};
        const char *path = cli_value(c, "-o");
        app_export(format, &ev->conversation, ev->messages, ev->n_messages, &text);
        if (!path) {
            cw_buf_add(cli_out(), text.data, text.len);
        } else if (write_out(path, &text, &err) != CW_OK) {
            status = cli_failed("export", &err);
        }
        cw_buf_free(&text);
    }
    cw_store_event_free(ev);
    status = close_store(s, status);
    return status == CLI_OK ? cli_finish() : status;
}

static const struct cli_flag export_flags[] = {
    {"--format", "FORMAT",
     "md (the default), json (complete, to be imported), jsonl, txt or html."},
    {"-o --output", "FILE", "Write to a file instead of standard output."},
};

const struct cli_command cli_export = {
    .name = "export",
    .synopsis = "ID [--format md|json|jsonl|txt|html] [-o FILE]",
    .summary = "Write a stored conversation, named by its ID or the beginning of it.",
    .operand = "ID",
    .options = "",
    .flags = export_flags,
    .n_flags = sizeof export_flags / sizeof *export_flags,
    .run = run_export,
};

/* ---- import --------------------------------------------------------------------------------- */

/* Queue one; `ahead` counts what was queued since the disk was waited for. */
static int put_imported(struct cw_store *s, struct app_imported *in, size_t *ahead,
                        struct cw_err *err) {
    struct cw_store_conversation *c = &in->conversation;
    int64_t *ids = cw_calloc(in->n_messages + 1, sizeof *ids);
    size_t leaf = (size_t)c->leaf;
    int rc = CW_OK;
    c->id = cw_store_new_id(s);
    c->leaf = 0;
    cw_store_put_conversation(s, c, NULL);
    for (size_t i = 0; i < in->n_messages && rc == CW_OK; i++) {
        struct cw_store_message *m = &in->messages[i];
        ids[i + 1] = m->id = cw_store_new_id(s);
        m->conversation = c->id;
        m->parent = ids[m->parent]; /* checked: an earlier one, or 0 */
        cw_store_put_message(s, m, NULL);
        *ahead += m->text.len + m->reasoning.len + m->n_tokens * sizeof *m->tokens + 1000;
        if (*ahead > IMPORT_AHEAD) {
            *ahead = 0;
            rc = cw_store_wait_saved(s, err);
        }
    }
    if (leaf <= in->n_messages) {
        cw_store_set_leaf(s, c->id, ids[leaf], NULL);
    }
    cw_store_release(s, c->id);
    free(ids);
    return rc;
}

static int run_import(struct cli *c) {
    struct cw_err err = {0};
    struct app_import in;
    size_t len, ahead = 0;
    int status = CLI_OK;
    if (!c->operand) {
        return cli_usage(c, "FILE is missing");
    }
    char *text = cli_read_file(c->operand, &len, &err);
    if (!text) {
        return cli_failed("import", &err);
    }
    int rc = app_import_parse(text, len, &in, &err);
    free(text);
    if (rc != CW_OK) {
        struct cw_err named;
        cw_fail(&named, rc, "%.200s: %s", c->operand, err.text);
        return cli_failed("import", &named);
    }
    struct cw_store *s = open_store(c, &status);
    if (!s) {
        app_import_free(&in);
        return status;
    }
    for (size_t i = 0; i < in.n && rc == CW_OK; i++) {
        rc = put_imported(s, &in.v[i], &ahead, &err);
    }
    if (rc == CW_OK) {
        rc = cw_store_wait_saved(s, &err);
    }
    if (rc != CW_OK) {
        status = cli_failed("import", &err);
    }
    for (size_t i = 0; i < in.n && rc == CW_OK; i++) {
        char name[CW_STORE_NAME];
        cw_store_name(in.v[i].conversation.id, name);
        cw_buf_printf(cli_out(), "%s  %zu message%s\n", name, in.v[i].n_messages,
                      in.v[i].n_messages == 1 ? "" : "s");
    }
    if (in.n_left_out > 0) {
        cli_note("%zu part%s no text: left out", in.n_left_out,
                 in.n_left_out == 1 ? " is" : "s are");
    }
    app_import_free(&in);
    if (rc != CW_OK) {
        cw_store_destroy(s, NULL); /* why was told */
        return status;
    }
    status = close_store(s, status);
    return status == CLI_OK ? cli_finish() : status;
}

const struct cli_command cli_import = {
    .name = "import",
    .synopsis = "FILE",
    .summary = "Store the conversations of a JSON file (- is standard input): chinwag's own, lists "
               "of messages with role and content, or ShareGPT's.",
    .operand = "FILE",
    .options = "",
    .run = run_import,
};

/* ---- delete, forget ------------------------------------------------------------------------- */

static void forget_typed(struct cli *c, const struct cw_store_event *ev, int *status) {
    char *history = app_path_join(c->paths.state, "history");
    struct cw_str *said = cw_calloc(ev->n_messages + 1, sizeof *said);
    struct cw_err err;
    for (size_t i = 0; i < ev->n_messages; i++) {
        said[i] = ev->messages[i].text;
    }
    if (*history && ui_history_forget(history, said, ev->n_messages, &err) != CW_OK) {
        *status = cli_failed("delete", &err);
    }
    free(said);
    free(history);
}

static int run_delete(struct cli *c) {
    int status = CLI_OK;
    if (!c->operand || !*c->operand) {
        return cli_usage(c, "ID is missing (see chinwag conversations)");
    }
    struct cw_store *s = open_store(c, &status);
    if (!s) {
        return status;
    }
    cw_store_load_name(s, c->operand, true, 1);
    struct cw_store_event *ev = answer(s, 1, &status);
    if (ev && !ev->owned) {
        struct cw_err err;
        cw_fail(&err, CW_EBUSY, "%s: it is open in another program", c->operand);
        status = cli_failed("delete", &err);
    } else if (ev) {
        cw_store_delete(s, ev->conversation.id, NULL);
        forget_typed(c, ev, &status);
    }
    cw_store_event_free(ev);
    return close_store(s, status);
}

const struct cli_command cli_delete = {
    .name = "delete",
    .synopsis = "ID",
    .summary = "Remove a stored conversation for good, named by its ID or the beginning of it.",
    .operand = "ID",
    .options = "",
    .run = run_delete,
};

static int run_forget(struct cli *c) {
    struct cw_err err = {0};
    int status = CLI_OK;
    if (!cli_has(c, "--all")) {
        return cli_usage(c, "--all is missing: everything that was said is removed");
    }
    struct cw_store *s = open_store(c, &status);
    if (!s) {
        return status;
    }
    cw_store_delete_all(s, NULL);
    if (cw_store_wait_saved(s, &err) != CW_OK) {
        status = cli_failed("forget", &err);
    }
    if (*c->paths.cache && cw_snapshots_remove(c->paths.cache, NULL, &err) != CW_OK) {
        status = cli_failed("forget", &err);
    }
    char *history = app_path_join(c->paths.state, "history");
    if (*history && unlink(history) != 0 && errno != ENOENT) {
        cw_fail(&err, CW_EIO, "%s: %s", history, strerror(errno));
        status = cli_failed("forget", &err);
    }
    free(history);
    return close_store(s, status);
}

static const struct cli_flag forget_flags[] = {
    {"--all", NULL, "Conversations, damaged copies of them, snapshots and the input history."},
};

const struct cli_command cli_forget = {
    .name = "forget",
    .synopsis = "--all",
    .summary = "Remove everything that was said, for good.",
    .options = "",
    .flags = forget_flags,
    .n_flags = sizeof forget_flags / sizeof *forget_flags,
    .run = run_forget,
};
