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
                      void (*entry)(const char *text, const char *time)) {
    if (text->len > 0) {
        text->data[text->len - 1] = '\0'; /* its last newline */
        entry(text->data, time ? time : "");
    }
    cw_buf_clear(text);
}

void ui_history_read(FILE *f, void (*entry)(const char *text, const char *time)) {
    struct cw_buf text = {0};
    char *line = NULL, *time = NULL;
    size_t cap = 0;
    ssize_t n;
    rewind(f);
    while ((n = getline(&line, &cap, f)) > 0) {
        if (line[0] == UI_HISTORY_MARK) {
            line[n - 1] = line[n - 1] == '\n' ? '\0' : line[n - 1];
            hand_over(&text, time, entry);
            free(time);
            time = cw_strdup(line);
        } else {
            cw_buf_add(&text, line, (size_t)n);
            if (line[n - 1] != '\n') {
                cw_buf_putc(&text, '\n');
            }
        }
    }
    hand_over(&text, time, entry);
    free(time);
    free(line);
    cw_buf_free(&text);
}

void ui_history_write(FILE *f, const char *text, const char *time) {
    fprintf(f, "%c%s\n%s\n", UI_HISTORY_MARK, time != NULL && time[0] != '\0' ? time + 1 : "0",
            text);
}

void ui_history_replace(const char *path, void (*write)(FILE *f)) {
    struct cw_buf name = {0};
    cw_buf_printf(&name, "%s.new", path);
    int fd = open(name.data, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (f != NULL) {
        write(f);
        bool whole = fflush(f) == 0;
        if (fclose(f) != 0 || !whole || rename(name.data, path) != 0) {
            unlink(name.data);
        }
    }
    cw_buf_free(&name);
}
