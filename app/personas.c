/* SPDX-License-Identifier: MIT
 *
 * See personas.h.
 */
#include "app/personas.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "app/config.h"
#include "chinwag/file.h"

enum { MAX_NAME = 100, MAX_PROMPT = 1024 * 1024 };

static const struct {
    const char *folder, *suffix;
} kinds[] = {[APP_PERSONA] = {"personas", ".ini"}, [APP_PROMPT] = {"prompts", ".txt"}};

static bool is_name(const char *name, size_t n) {
    if (n == 0 || n > MAX_NAME || name[0] == '.') {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)name[i]) && strchr("-_.", name[i]) == NULL) {
            return false;
        }
    }
    return true;
}

static char *folder_of(const struct app_paths *paths, enum app_named kind) {
    return app_path_join(paths->config, kinds[kind].folder);
}

char *app_named_path(const struct app_paths *paths, enum app_named kind, const char *name) {
    if (!is_name(name, strlen(name)) || paths->config[0] == '\0') {
        return NULL;
    }
    char *folder = folder_of(paths, kind);
    struct cw_buf path = {0};
    cw_buf_printf(&path, "%s/%s%s", folder, name, kinds[kind].suffix);
    free(folder);
    return cw_buf_take(&path);
}

void app_named_list(const struct app_paths *paths, enum app_named kind,
                    void (*each)(void *arg, const char *name), void *arg) {
    char *folder = folder_of(paths, kind);
    struct dirent **entries = NULL;
    int n = folder[0] != '\0' ? scandir(folder, &entries, NULL, alphasort) : 0;
    size_t suffix = strlen(kinds[kind].suffix);
    for (int i = 0; i < n; i++) {
        size_t len = strlen(entries[i]->d_name);
        if (len > suffix && is_name(entries[i]->d_name, len - suffix) &&
            strcmp(entries[i]->d_name + len - suffix, kinds[kind].suffix) == 0) {
            entries[i]->d_name[len - suffix] = '\0';
            each(arg, entries[i]->d_name);
        }
        free(entries[i]);
    }
    free(entries);
    free(folder);
}

/* ---- personas ------------------------------------------------------------------------------- */

/* The first odd line, such as an option that does not exist. */
static void note_odd(void *arg, const char *line) {
    struct cw_err *odd = arg;
    if (odd->code == CW_OK) {
        cw_fail(odd, CW_EFORMAT, "%s", line);
    }
}

int app_persona_apply(struct app_settings *s, const struct app_paths *paths, const char *name,
                      enum app_origin origin, size_t *n_fixed, struct cw_err *err) {
    char *path = app_named_path(paths, APP_PERSONA, name);
    if (path == NULL) {
        return cw_fail(err, CW_ENOENT, "there is no persona of that name");
    }
    /* read into settings of its own: what the file says is then what has the file's origin */
    struct app_settings read;
    size_t fixed = 0;
    struct cw_err odd = {0};
    const struct app_config_sink sink = {.warn = note_odd, .arg = &odd};
    app_settings_init(&read);
    int rc = app_config_load(&read, path, &sink, err);
    if (rc == CW_OK && odd.code != CW_OK) { /* half a persona is none */
        rc = cw_fail(err, odd.code, "%s", odd.text);
    }
    for (size_t i = 0; i < app_n_options && rc == CW_OK; i++) {
        const struct app_option *o = &app_options[i];
        if (app_settings_origin(&read, o) != APP_CONFIG || strcmp(o->name, "persona") == 0) {
            continue;
        }
        if (origin == APP_LIVE && !(o->where & APP_ON_SET)) {
            fixed++;
            continue;
        }
        if (origin == APP_FLAG && app_settings_origin(s, o) == APP_FLAG) {
            continue; /* said on the command line itself */
        }
        char *value = app_settings_get(&read, o);
        rc = app_settings_set(s, o, value, origin, err);
        free(value);
    }
    app_settings_free(&read);
    free(path);
    if (n_fixed != NULL) {
        *n_fixed = fixed;
    }
    return rc;
}

/* ---- prompts -------------------------------------------------------------------------------- */

/* The next of "a=1 b='two words'"; a word that is none has no value (NULL). False at the end. */
static bool next_pair(const char **rest, struct cw_str *key, struct cw_str *value) {
    const char *p = *rest + strspn(*rest, " \t\n");
    *key = (struct cw_str){p, strcspn(p, "= \t\n")};
    *value = (struct cw_str){NULL, 0};
    p += key->len;
    if (*p == '=') {
        char quote = p[1] == '\'' || p[1] == '"' ? p[1] : '\0';
        p += quote != '\0' ? 2 : 1;
        const char *end = quote != '\0' ? strchr(p, quote) : p + strcspn(p, " \t\n");
        end = end != NULL ? end : p + strlen(p);
        *value = (struct cw_str){p, (size_t)(end - p)};
        p = end + (quote != '\0' && *end == quote);
    }
    *rest = p;
    return key->len > 0 || value->data != NULL;
}

/* The value of a key is appended; false: there is none. */
static bool find_value(const char *values, const char *key, size_t n_key, struct cw_buf *out) {
    struct cw_str k, value;
    while (next_pair(&values, &k, &value)) {
        if (value.data != NULL && k.len == n_key && memcmp(k.data, key, n_key) == 0) {
            cw_buf_add(out, value.data, value.len);
            return true;
        }
    }
    return false;
}

static char *read_prompt(const char *path, struct cw_err *err) {
    struct cw_buf text = {0};
    int rc = cw_file_read(path, MAX_PROMPT, &text, err);
    if (rc == CW_OK && text.len > 0 && memchr(text.data, '\0', text.len) != NULL) {
        rc = cw_fail(err, CW_EFORMAT, "%s: it is no text", path);
    }
    if (rc != CW_OK) {
        cw_buf_free(&text);
        return NULL;
    }
    text.len -= text.len > 0 && text.data[text.len - 1] == '\n';
    cw_buf_putc(&text, '\0');
    return cw_buf_take(&text);
}

int app_prompt_fill(const struct app_paths *paths, const char *name, const char *values, char **out,
                    size_t *missing, struct cw_err *err) {
    char *path = app_named_path(paths, APP_PROMPT, name);
    *out = NULL;
    if (path == NULL) {
        return cw_fail(err, CW_ENOENT, "there is no prompt of that name");
    }
    char *text = read_prompt(path, err);
    free(path);
    if (text == NULL) {
        return err != NULL ? err->code : CW_EIO;
    }
    struct cw_str key, value;
    for (const char *rest = values; next_pair(&rest, &key, &value);) {
        if (value.data == NULL) { /* not to be dropped in silence */
            free(text);
            return cw_fail(err, CW_EINVAL, "%.*s is no NAME=VALUE; quotes hold a value of words",
                           key.len < 40 ? (int)key.len : 40, key.data);
        }
    }
    struct cw_buf filled = {0};
    size_t unfilled = 0;
    for (const char *p = text; *p != '\0';) {
        size_t n = 0;
        while (*p == '{' && (isalnum((unsigned char)p[1 + n]) || p[1 + n] == '_')) {
            n++;
        }
        if (n == 0 || p[1 + n] != '}') {
            cw_buf_putc(&filled, *p++);
            continue;
        }
        if (!find_value(values, p + 1, n, &filled)) {
            unfilled += filled.len == 0 || memmem(filled.data, filled.len, p, n + 2) == NULL;
            cw_buf_add(&filled, p, n + 2);
        }
        p += n + 2;
    }
    free(text);
    cw_buf_putc(&filled, '\0');
    *out = cw_buf_take(&filled);
    if (missing != NULL) {
        *missing = unfilled;
    }
    return CW_OK;
}
