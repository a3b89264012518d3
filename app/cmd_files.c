/* SPDX-License-Identifier: MIT
 *
 * Commands that take files into the message, and messages out to the clipboard or a file.
 *
 * An attached file stands in the input line as one folded piece. It is text or it is refused, with
 * the reason; what it costs in tokens is counted by the generator, and when the message is then
 * longer than the context, the files are taken out again (app.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/cmd.h"
#include "chinwag/file.h"
#include "chinwag/utf8.h"

enum { MAX_BYTES = 4 * 1024 * 1024, MAX_FILES = 32 };

/* ---- files ---------------------------------------------------------------------------------- */

/* Whether bytes are text: UTF-8 throughout, and no control character but those of layout. */
static const char *not_text(const char *s, size_t n) {
    for (size_t at = 0; at < n;) {
        uint32_t c;
        int bytes = cw_utf8_decode(s + at, n - at, &c);
        if (bytes <= 0) {
            return "it is no UTF-8 text";
        }
        if (c < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f') {
            return "it is binary";
        }
        at += (size_t)bytes;
    }
    return NULL;
}

/* The text of a file; on failure *why says so. */
static bool read_text(const char *path, struct cw_buf *out, char why[128]) {
    struct stat st;
    /* never waits: a pipe without a writer, a device */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &st) != 0) {
        snprintf(why, 128, "%s", strerror(errno));
    } else if (!S_ISREG(st.st_mode)) {
        snprintf(why, 128, "it is no regular file");
    } else if (st.st_size > MAX_BYTES) {
        snprintf(why, 128, "it is too long: %.1f MB, at most %d MiB are taken",
                 (double)st.st_size / 1e6, MAX_BYTES / 1024 / 1024);
    } else {
        const char *bad = cw_file_read_fd(fd, path, MAX_BYTES, out, NULL) != CW_OK
                              ? "it cannot be read"
                          : out->len == 0 ? "it is empty"
                                          : not_text(out->data, out->len);
        if (bad != NULL) {
            cw_buf_free(out);
            snprintf(why, 128, "%s", bad);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return out->len > 0;
}

/* Read a file into the input line. The text says which file it is, as the model must know. */
static bool attach(struct app *a, const char *path, size_t *bytes, char why[128]) {
    struct cw_buf text = {0}, whole = {0};
    if (!read_text(path, &text, why)) {
        return false;
    }
    const char *slash = strrchr(path, '/');
    cw_buf_printf(&whole, "%s:\n", path);
    cw_buf_add(&whole, text.data, text.len);
    if (whole.data[whole.len - 1] != '\n') {
        cw_buf_putc(&whole, '\n');
    }
    bool attached = app_draft_attach(a, slash ? slash + 1 : path, whole.data, whole.len);
    if (attached) {
        *bytes += text.len;
    } else {
        snprintf(why, 128, "there are too many files in the message already");
    }
    cw_buf_free(&text);
    cw_buf_free(&whole);
    return attached;
}

void cmd_run_read(struct app *a, const char *args) {
    char *path = cmd_trimmed(args);
    char why[128] = "";
    size_t bytes = 0;
    if (path[0] == '\0') {
        app_hint(a, true, "/read FILE: which file?");
    } else if (!attach(a, path, &bytes, why)) {
        char shown[160];
        cw_printable(shown, sizeof shown, path, strlen(path));
        app_hint(a, true, "%s is not attached: %s", shown, why);
    } else {
        app_hint(a, false, "attached %.1f kB; counting its tokens", (double)bytes / 1e3);
        app_draft_changed(a);
    }
    free(path);
}

void cmd_run_glob(struct app *a, const char *args) {
    char *pattern = cmd_trimmed(args);
    glob_t found = {0};
    struct cw_buf refused = {0};
    size_t bytes = 0, n = 0;
    if (pattern[0] == '\0') {
        app_hint(a, true, "/glob PATTERN: which files?");
    } else if (glob(pattern, GLOB_MARK | GLOB_TILDE | GLOB_BRACE, NULL, &found) != 0) {
        app_hint(a, true, "no file matches %s", pattern);
    } else if (found.gl_pathc > MAX_FILES) {
        app_hint(a, true, "%zu files match, at most %d can be attached", found.gl_pathc, MAX_FILES);
    } else {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            const char *path = found.gl_pathv[i];
            char why[128] = "";
            if (path[strlen(path) - 1] == '/') {
                continue; /* a directory */
            }
            if (attach(a, path, &bytes, why)) {
                n++;
            } else {
                cw_buf_printf(&refused, "%s%s is not attached: %s", refused.len > 0 ? "\n" : "",
                              path, why);
            }
        }
        app_hint(a, n == 0, "attached %zu file%s, %.1f kB; counting their tokens", n,
                 n == 1 ? "" : "s", (double)bytes / 1e3);
        if (refused.len > 0) {
            app_tell(a, true, refused.data, refused.len);
        }
        app_draft_changed(a);
    }
    globfree(&found);
    cw_buf_free(&refused);
    free(pattern);
}

void cmd_complete_file(const struct app *a, const char *line, size_t begin,
                       struct ui_candidates *out) {
    out->files = true;
}

/* ---- the clipboard -------------------------------------------------------------------------- */

/* Go back over the code blocks to the n-th from the end, and copy it. */
static void copy_code(struct app *a, int64_t n) {
    struct cw_buf text = {0};
    bool there = true;
    ui_transcript_unpick(a->transcript);
    ui_transcript_to_end(a->transcript);
    for (int64_t i = 0; i < n && there; i++) {
        there = ui_transcript_pick(a->transcript, UI_PICK_CODE, -1);
    }
    if (there) {
        ui_transcript_picked_text(a->transcript, &text);
        app_copy(a, text.data, text.len, "the code block");
    } else {
        app_hint(a, true, "there is no such code block");
    }
    ui_transcript_unpick(a->transcript);
    cw_buf_free(&text);
}

/* Messages are counted from 1, as their headings say. */
static void copy_message(struct app *a, int64_t n) {
    char name[48];
    if ((uint64_t)n > a->chat.n) {
        app_hint(a, true, "there is no message %lld", (long long)n);
        return;
    }
    const struct cw_buf *text = &a->chat.messages[n - 1]->text;
    snprintf(name, sizeof name, "message %lld", (long long)n);
    app_copy(a, text->data, text->len, name);
}

static void copy_last_reply(struct app *a) {
    for (size_t i = a->chat.n; i-- > 0;) {
        const struct chat_message *m = a->chat.messages[i];
        if (m->role == CHAT_REPLY && m->text.len > 0) {
            app_copy(a, m->text.data, m->text.len, "the last reply");
            return;
        }
    }
    app_hint(a, true, "there is no reply yet");
}

void cmd_run_copy(struct app *a, const char *args) {
    struct cw_str word = cmd_take_word(&args);
    bool code = cw_str_eq(word, "code");
    if (code) {
        word = cmd_take_word(&args);
    } else if (word.len == 0) {
        copy_last_reply(a);
        return;
    }
    char number[32];
    int64_t n = 1;
    snprintf(number, sizeof number, "%.*s", (int)word.len, word.data);
    if (word.len > 0 && (!app_parse_int64(number, &n) || n < 1 || n > INT32_MAX)) {
        app_hint(a, true, "/copy, /copy N for message N, /copy code or /copy code N, from the end");
    } else if (code) {
        copy_code(a, n);
    } else {
        copy_message(a, n);
    }
}

void cmd_complete_copy(const struct app *a, const char *line, size_t begin,
                       struct ui_candidates *out) {
    ui_candidates_add(out, "code");
}

/* ---- a file of the conversation ------------------------------------------------------------- */

static void add_message(const struct chat_message *m, struct cw_buf *out) {
    cw_buf_puts(out, m->role == CHAT_REPLY ? "## Reply\n\n" : "## You\n\n");
    cw_buf_add(out, m->text.data, m->text.len);
    cw_buf_puts(out, m->text.len > 0 && m->text.data[m->text.len - 1] == '\n' ? "\n" : "\n\n");
}

bool cmd_write_file(const char *path, bool over, const struct cw_buf *text) {
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int fd = open(path, flags | (over ? O_TRUNC : O_EXCL), 0600);
    if (fd < 0) {
        return false;
    }
    size_t at = 0;
    while (at < text->len) {
        ssize_t n = write(fd, text->data + at, text->len - at);
        if (n < 0 && errno != EINTR) {
            break;
        }
        at += n > 0 ? (size_t)n : 0;
    }
    int why = at < text->len ? errno : 0;
    if (close(fd) != 0 && why == 0) {
        why = errno;
    }
    errno = why;
    return why == 0;
}

void cmd_run_save(struct app *a, const char *args) {
    const char *rest = args;
    bool reply = false, over = false;
    for (;;) {
        const char *before = rest;
        struct cw_str word = cmd_take_word(&rest);
        bool more = rest[strspn(rest, " \t")] != '\0'; /* a last word is the file's name */
        if (more && cw_str_eq(word, "reply")) {
            reply = true;
        } else if (more && cw_str_eq(word, "over")) {
            over = true;
        } else {
            rest = before;
            break;
        }
    }
    char *path = cmd_trimmed(rest), shown[160];
    struct cw_buf text = {0};
    for (size_t i = a->chat.n; i-- > 0 && reply && text.len == 0;) {
        const struct chat_message *m = a->chat.messages[i];
        if (m->role == CHAT_REPLY) {
            cw_buf_add(&text, m->text.data, m->text.len);
        }
    }
    for (size_t i = 0; i < a->chat.n && !reply; i++) {
        add_message(a->chat.messages[i], &text);
    }
    cw_printable(shown, sizeof shown, path, strlen(path));
    if (path[0] == '\0') {
        app_hint(a, true, "/save FILE: which file?");
    } else if (text.len == 0) {
        app_hint(a, true, "there is nothing to save yet");
    } else if (cmd_write_file(path, over, &text)) {
        app_hint(a, false, "saved %.1f kB to %s", (double)text.len / 1e3, shown);
    } else if (errno == EEXIST) {
        app_hint(a, true, "%s is there already: /save over %s replaces it", shown, shown);
    } else {
        app_hint(a, true, "%s is not saved: %s", shown, strerror(errno));
    }
    cw_buf_free(&text);
    free(path);
}
