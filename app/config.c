/* SPDX-License-Identifier: MIT
 *
 * Reading config.ini through inih. inih's handler is not told the line, and a line longer than its
 * buffer silently becomes two: so the lines reach it through a reader of ours, which counts them
 * and refuses long ones. See config.h.
 */
#include "app/config.h"

#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "app/words.h"

struct reader {
    struct app_settings *settings;
    const struct app_config_sink *sink;
    const char *path;
    FILE *file;
    int line;
    bool continues;      /* the present line begins with a blank */
    struct cw_buf value; /* of a text option that may go on in further lines */
    const struct app_option *option;
    struct cw_err err; /* the first error */
};

static void set_error(struct reader *r, const char *what) {
    if (r->err.code == CW_OK) {
        cw_fail(&r->err, CW_EFORMAT, "%s:%d: %s", r->path, r->line, what);
    }
}

/* `meant` is what was likely meant; its data may be NULL. */
static void warn(struct reader *r, const char *what, const char *name, struct cw_str meant) {
    if (r->sink && r->sink->warn) {
        struct cw_err line;
        cw_fail(&line, CW_OK, "%s:%d: %s '%s'%s%.*s%s", r->path, r->line, what, name,
                meant.data ? ", did you mean '" : "", (int)meant.len, meant.data ? meant.data : "",
                meant.data ? "'?" : "");
        r->sink->warn(r->sink->arg, line.text);
    }
}

static void warn_unknown(struct reader *r, const char *name) {
    struct app_nearest near = {.word = {name, strlen(name)}};
    for (size_t i = 0; i < app_n_options; i++) {
        if (app_options[i].where & APP_ON_CONFIG) {
            app_nearest_try(&near, app_options[i].name);
        }
    }
    warn(r, "unknown option", name, near.name);
}

/* fgets for inih: at most cap - 1 bytes of the next line. */
static char *read_line(char *dst, int cap, void *arg) {
    struct reader *r = arg;
    int n = 0;
    int c;
    bool bad = false;
    r->line++;
    while ((c = getc_unlocked(r->file)) != EOF) {
        if (c == '\0' && !bad) {
            set_error(r, "a NUL byte");
            bad = true;
        } else if (n >= cap - 2 && c != '\n' && !bad) {
            struct cw_err e;
            cw_fail(&e, CW_EFORMAT,
                    "longer than %d bytes; a text may go on in a line that begins with a blank",
                    cap - 2);
            set_error(r, e.text);
            bad = true;
        }
        if (!bad || c == '\n') {
            dst[n++] = (char)c;
        }
        if (c == '\n') {
            break;
        }
    }
    if (ferror(r->file)) {
        cw_fail(&r->err, CW_EIO, "%s: %s", r->path, strerror(errno));
        return NULL;
    }
    if (n == 0 && !bad) {
        return NULL;
    }
    if (bad) {
        n = 0;
        dst[n++] = '\n'; /* told already: an empty line for inih */
    }
    dst[n] = '\0';
    r->continues = *dst == ' ' || *dst == '\t';
    return dst;
}

static int handle_key(struct reader *r, const char *action, const char *keys) {
    struct cw_err e = {0};
    r->option = NULL;
    int code = CW_OK;
    if (r->continues) {
        set_error(r, "keys stand in one line");
        return 0;
    }
    if (r->sink && r->sink->key) {
        code = r->sink->key(r->sink->arg, action, keys, r->line, &e);
    }
    if (code == CW_ENOENT) {
        warn(r, "unknown action", action, (struct cw_str){0});
    } else if (code != CW_OK) {
        set_error(r, e.text);
    }
    return code == CW_OK || code == CW_ENOENT;
}

static int handle_option(void *arg, const char *section, const char *name, const char *value) {
    struct reader *r = arg;
    struct cw_err e = {0};
    if (strcmp(section, "keys") == 0) {
        return handle_key(r, name, value);
    }
    if (r->continues && r->option) {
        if (r->option->kind != APP_STRING) {
            set_error(r, "a line that begins with a blank can only go on with a text");
            return 0;
        }
        cw_buf_printf(&r->value, "\n%s", value);
    } else {
        r->option = *name == '-' ? NULL : app_option_find(name);
        if (!r->option) {
            warn_unknown(r, name);
            return 1;
        }
        if (!(r->option->where & APP_ON_CONFIG)) {
            warn(r, "cannot be set in a file:", name, (struct cw_str){0});
            r->option = NULL;
            return 1;
        }
        cw_buf_clear(&r->value);
        cw_buf_puts(&r->value, value);
    }
    const char *text = r->value.data ? r->value.data : "";
    if (app_settings_set(r->settings, r->option, text, APP_CONFIG, &e) != CW_OK) {
        set_error(r, e.text);
        return 0;
    }
    return 1;
}

int app_config_load(struct app_settings *s, const char *path, const struct app_config_sink *sink,
                    struct cw_err *err) {
    struct reader r = {.settings = s, .sink = sink, .path = path};
    r.file = fopen(path, "re");
    if (!r.file) {
        int code = errno == ENOENT ? CW_ENOENT : CW_EIO;
        return cw_fail(err, code, "%s: %s", path, strerror(errno));
    }
    int bad_line = ini_parse_stream(read_line, &r, handle_option, &r);
    if (bad_line > 0 && r.err.code == CW_OK) {
        r.line = bad_line;
        set_error(&r, "neither 'option = value' nor a [section]");
    } else if (bad_line < 0) {
        cw_fail(&r.err, CW_EIO, "%s: cannot be read", path);
    }
    fclose(r.file);
    cw_buf_free(&r.value);
    if (r.err.code != CW_OK && err) {
        *err = r.err;
    }
    return r.err.code;
}
