/* SPDX-License-Identifier: MIT
 *
 * See history.h.
 */
#include "ui/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chinwag/mem.h"

FILE *ui_history_open(const char *path, struct cw_err *err) {
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600);
    struct stat st;
    int why = fd < 0 ? errno : 0;
    if (why == 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))) {
        why = EINVAL;
    }
    FILE *f = why == 0 ? fdopen(fd, "a+") : NULL;
    if (f == NULL) {
        why = why != 0 ? why : errno;
        if (fd >= 0) {
            close(fd);
        }
        cw_fail(err, CW_EIO, "history: %s: %s", path, strerror(why));
    }
    return f;
}

static void hand_over(struct cw_buf *text, const char *time,
                      void (*entry)(void *arg, const char *text, const char *time), void *arg) {
    if (text->len > 0) {
        text->data[text->len - 1] = '\0'; /* its last newline */
        entry(arg, text->data, time ? time : "");
    }
    cw_buf_clear(text);
}

void ui_history_read(FILE *f, void (*entry)(void *arg, const char *text, const char *time),
                     void *arg) {
    struct cw_buf text = {0};
    char *line = NULL, *time = NULL;
    size_t cap = 0;
    ssize_t n;
    rewind(f);
    while ((n = getline(&line, &cap, f)) > 0) {
        if (line[0] == UI_HISTORY_MARK) {
            line[n - 1] = line[n - 1] == '\n' ? '\0' : line[n - 1];
            hand_over(&text, time, entry, arg);
            free(time);
            time = cw_strdup(line);
        } else {
            cw_buf_add(&text, line, (size_t)n);
            if (line[n - 1] != '\n') {
                cw_buf_putc(&text, '\n');
            }
        }
    }
    hand_over(&text, time, entry, arg);
    free(time);
    free(line);
    cw_buf_free(&text);
}

void ui_history_write(FILE *f, const char *text, const char *time) {
    fprintf(f, "%c%s\n%s\n", UI_HISTORY_MARK, time != NULL && time[0] != '\0' ? time + 1 : "0",
            text);
}

int ui_history_replace(const char *path, void (*write)(void *arg, FILE *f), void *arg,
                       struct cw_err *err) {
    struct cw_buf name = {0};
    int rc = CW_OK;
    cw_buf_printf(&name, "%s.new", path);
    int fd = open(name.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (f == NULL) {
        rc = cw_fail(err, CW_EIO, "history: %s: %s", name.data, strerror(errno));
    } else {
        write(arg, f);
        bool whole = fflush(f) == 0;
        if (fclose(f) != 0 || !whole || rename(name.data, path) != 0) {
            rc = cw_fail(err, CW_EIO, "history: %s: %s", path, strerror(errno));
            unlink(name.data);
        }
    }
    cw_buf_free(&name);
    return rc;
}

/* ---- forgetting ----------------------------------------------------------------------------- */

/* Whether message[from, from + entry.len) is the entry. */
static bool stands_at(struct cw_str message, size_t from, struct cw_str entry) {
    return memcmp(message.data + from, entry.data, entry.len) == 0;
}

bool ui_history_tells(struct cw_str entry, struct cw_str message) {
    if (entry.len == 0 || message.len == 0) {
        return false;
    }
    if (entry.len > message.len) {
        size_t begin = entry.len - message.len;
        return entry.data[0] == '/' && entry.data[begin - 1] == ' ' &&
               stands_at(entry, begin, message);
    }
    size_t more = message.len - entry.len;
    return ((more == 0 || message.data[entry.len] == '\n') && stands_at(message, 0, entry)) ||
           (more > 0 && message.data[more - 1] == '\n' && stands_at(message, more, entry));
}

bool ui_history_tells_any(const char *entry, const struct cw_str *messages, size_t n) {
    struct cw_str said = {entry, strlen(entry)};
    for (size_t i = 0; i < n; i++) {
        if (ui_history_tells(said, messages[i])) {
            return true;
        }
    }
    return false;
}

struct forgetting {
    FILE *from, *to;
    const struct cw_str *messages;
    size_t n;
};

static void keep_entry(void *arg, const char *text, const char *time) {
    const struct forgetting *f = arg;
    if (!ui_history_tells_any(text, f->messages, f->n)) {
        ui_history_write(f->to, text, time);
    }
}

static void write_kept(void *arg, FILE *to) {
    struct forgetting *f = arg;
    f->to = to;
    ui_history_read(f->from, keep_entry, f);
}

int ui_history_forget(const char *path, const struct cw_str *messages, size_t n,
                      struct cw_err *err) {
    struct forgetting f = {.messages = messages, .n = n};
    if (n == 0 || (access(path, F_OK) != 0 && errno == ENOENT)) {
        return CW_OK;
    }
    f.from = ui_history_open(path, err);
    if (f.from == NULL) {
        return CW_EIO;
    }
    int rc = ui_history_replace(path, write_kept, &f, err);
    fclose(f.from);
    return rc;
}
