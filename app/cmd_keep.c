/* SPDX-License-Identifier: MIT
 *
 * Commands of the conversations that are kept, and of one as a file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "app/cmd.h"
#include "app/exchange.h"

void cmd_run_list(struct app *a, const char *args) {
    char *query = cmd_trimmed(args);
    app_persist_list(a, query);
    free(query);
}

void cmd_run_load(struct app *a, const char *args) {
    char *name = cmd_trimmed(args);
    if (name[0] == '\0') {
        app_persist_choose(a);
    } else {
        app_persist_load(a, name);
    }
    free(name);
}

void cmd_run_rename(struct app *a, const char *args) {
    char *title = cmd_trimmed(args);
    app_persist_rename(a, title);
    free(title);
}

void cmd_run_delete(struct app *a, const char *args) {
    app_persist_delete(a);
}

void cmd_run_undelete(struct app *a, const char *args) {
    app_persist_undelete(a);
}

void cmd_run_private(struct app *a, const char *args) {
    char *word = cmd_trimmed(args);
    if (word[0] != '\0' && strcmp(word, "on") != 0 && strcmp(word, "off") != 0) {
        app_hint(a, true, "/private on or off");
    } else {
        app_persist_private(a, word[0] == '\0' ? !a->persist.off : strcmp(word, "on") == 0);
    }
    free(word);
}

/* ---- a file of the conversation ------------------------------------------------------------- */

/* "[FORMAT] [over] FILE": where FORMAT is not said, the end of the file's name says it. The name,
 * caller must free; NULL: its end is no format. */
static char *parse_export(const char *args, enum app_format *format, bool *over) {
    bool known = false;
    *format = APP_FORMAT_MD;
    *over = false;
    for (;;) {
        const char *rest = args;
        struct cw_str word = cmd_take_word(&rest);
        char *text = cw_strndup(word.data, word.len);
        bool is_format = !known && app_format_find(text, format);
        bool is_over = !*over && strcmp(text, "over") == 0;
        free(text);
        if (*rest == '\0' || (!is_format && !is_over)) { /* a last word is the file's name */
            break;
        }
        known = known || is_format;
        *over = *over || is_over;
        args = rest;
    }
    char *path = cmd_trimmed(args);
    const char *dot = strrchr(path, '.');
    if (!known && dot != NULL && strchr(dot, '/') == NULL && !app_format_find(dot + 1, format)) {
        free(path);
        return NULL;
    }
    return path;
}

void cmd_run_export(struct app *a, const char *args) {
    enum app_format format;
    bool over;
    struct cw_buf text = {0};
    char *path = parse_export(args, &format, &over), shown[160];
    if (path == NULL) {
        app_hint(a, true, "/export md, json, jsonl, txt or html FILE: that name tells none");
        return;
    }
    cw_printable(shown, sizeof shown, path, strlen(path));
    if (path[0] == '\0') {
        app_hint(a, true, "/export FILE: which file?");
    } else if (a->chat.n_all == 0) {
        app_hint(a, true, "there is nothing to export yet");
    } else {
        app_persist_export(a, format, &text);
        if (cmd_write_file(path, over, &text)) {
            app_hint(a, false, "exported %.1f kB to %s", (double)text.len / 1e3, shown);
        } else if (errno == EEXIST) {
            app_hint(a, true, "%s is there already: /export over %s replaces it", shown, shown);
        } else {
            app_hint(a, true, "%s is not written: %s", shown, strerror(errno));
        }
    }
    cw_buf_free(&text);
    free(path);
}

void cmd_complete_export(const struct app *a, const char *line, size_t begin,
                         struct ui_candidates *out) {
    static const char *const words[] = {"md", "json", "jsonl", "txt", "html"};
    const char *rest = line;
    cmd_take_word(&rest);
    for (size_t i = 0; i < sizeof words / sizeof words[0] && begin <= (size_t)(rest - line); i++) {
        ui_candidates_add(out, words[i]);
    }
    out->files = true;
}
