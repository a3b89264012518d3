/* SPDX-License-Identifier: MIT
 *
 * See support.h.
 */
#include "tests/store/support.h"

#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files ---------------------------------------------------------------------------------- */

char *make_dir(void) {
    const char *base = getenv("TMPDIR");
    struct cw_buf b = {0};
    cw_buf_printf(&b, "%s/chinwag-store-XXXXXX", base && *base == '/' ? base : "/tmp");
    char *dir = cw_buf_take(&b);
    ck_assert_ptr_nonnull(mkdtemp(dir));
    return dir;
}

char *path_in(const char *dir, const char *name) {
    struct cw_buf b = {0};
    cw_buf_printf(&b, "%s/%s", dir, name);
    return cw_buf_take(&b);
}

static void empty_dir(const char *dir) {
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
            char *path = path_in(dir, e->d_name);
            struct stat st;
            if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
                empty_dir(path);
                rmdir(path);
            } else {
                unlink(path);
            }
            free(path);
        }
    }
    if (d) {
        closedir(d);
    }
}

void drop_dir(char *dir) {
    chmod(dir, 0700);
    empty_dir(dir);
    rmdir(dir);
    free(dir);
}

char *read_file(const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    struct cw_buf b = {0};
    char chunk[65536];
    size_t k;
    if (!f) {
        return NULL;
    }
    while ((k = fread(chunk, 1, sizeof chunk, f)) > 0) {
        cw_buf_add(&b, chunk, k);
    }
    fclose(f);
    *n = b.len;
    return cw_buf_take(&b);
}

void write_file(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "wb");
    ck_assert_msg(f != NULL, "%s", path);
    ck_assert_uint_eq(fwrite(data, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
}

void copy_file(const char *from, const char *to) {
    size_t n;
    char *data = read_file(from, &n);
    ck_assert_msg(data != NULL, "%s", from);
    write_file(to, data, n);
    free(data);
}

bool dir_holds(const char *dir, const char *word) {
    bool found = false;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t n;
        char *path = path_in(dir, e->d_name);
        struct stat st;
        char *data = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? read_file(path, &n) : NULL;
        if (data) {
            found = found || memmem(data, n, word, strlen(word)) != NULL;
        }
        free(data);
        free(path);
    }
    if (d) {
        closedir(d);
    }
    return found;
}

size_t count_files(const char *dir, const char *begin) {
    size_t n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        n += strncmp(e->d_name, begin, strlen(begin)) == 0;
    }
    if (d) {
        closedir(d);
    }
    return n;
}

/* ---- stores --------------------------------------------------------------------------------- */

struct cw_store *open_store_with(const char *dir, const char *vfs, size_t max_queued) {
    struct cw_store *s;
    struct cw_err err = {0};
    const struct cw_store_options opt = {.dir = dir, .vfs = vfs, .max_queued = max_queued};
    ck_assert_msg(cw_store_create(&s, &opt, &err) == CW_OK, "%s", err.text);
    return s;
}

struct cw_store *open_store(const char *dir) {
    return open_store_with(dir, NULL, 0);
}

void close_store(struct cw_store *s, int code) {
    struct cw_err err = {0};
    int got = cw_store_destroy(s, &err);
    ck_assert_msg(got == code, "destroying said %d: %s", got, err.text);
}

struct cw_store_event *await_event(struct cw_store *s, enum cw_store_event_kind kind) {
    for (;;) {
        cw_store_ack(s);
        for (struct cw_store_event *ev; (ev = cw_store_next(s)) != NULL;) {
            if (ev->kind == kind) {
                return ev;
            }
            cw_store_event_free(ev);
        }
        struct pollfd p = {.fd = cw_store_fd(s), .events = POLLIN};
        ck_assert_msg(poll(&p, 1, 120000) == 1, "event %d does not come", (int)kind);
    }
}

void expect_saved(struct cw_store *s) {
    struct cw_err err = {0};
    ck_assert_msg(cw_store_wait_saved(s, &err) == CW_OK, "%s", err.text);
}

struct cw_store_event *load(struct cw_store *s, int64_t id) {
    static uint64_t serial = 1000000;
    cw_store_load(s, id, ++serial);
    struct cw_store_event *ev = cw_store_wait(s, serial);
    ck_assert_msg(ev->kind == CW_STORE_LOADED, "load: %s", ev->text);
    return ev;
}

struct cw_store_event *list(struct cw_store *s, const char *query) {
    static uint64_t serial = 2000000;
    cw_store_list(s, query, 1000, ++serial);
    struct cw_store_event *ev = cw_store_wait(s, serial);
    ck_assert_msg(ev->kind == CW_STORE_LIST, "list: %s", ev->text);
    return ev;
}

/* ---- conversations -------------------------------------------------------------------------- */

struct cw_str str(const char *s) {
    return (struct cw_str){s, strlen(s)};
}

bool str_is(struct cw_str a, const char *s) {
    return cw_str_eq(a, s);
}

void some_sampling(struct cw_sampling *s) {
    memset(s, 0, sizeof *s);
    s->temp = 0.8f;
    s->top_p = 0.95f;
    s->typical_p = 1;
    s->penalty_repeat = 1;
    s->penalty_last_n = 64;
    s->dry_last_n = -1;
}

static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

void chat_text(unsigned seed, int i, struct cw_buf *out) {
    static const char *const words[] = {"blue",  "river", "stone", "walks", "under", "seven",
                                        "lamps", "quiet", "north", "paper", "glass", "amber"};
    uint32_t r = seed * 7919u + (uint32_t)i * 104729u + 17;
    int n = 3 + (int)(next_random(&r) % (i % 7 == 3 ? 400 : 40));
    cw_buf_printf(out, "Message %d of chat%u:\n", i, seed);
    for (int k = 0; k < n; k++) {
        cw_buf_printf(out, " %s", words[next_random(&r) % (sizeof words / sizeof *words)]);
    }
}

struct cw_store_token *make_tokens(size_t n, unsigned seed) {
    struct cw_store_token *t = cw_calloc(n + 1, sizeof *t);
    uint32_t r = seed;
    for (size_t i = 0; i < n; i++) {
        struct cw_draw *d = &t[i].draw;
        d->id = (int32_t)(next_random(&r) % 150000);
        d->p = (float)(next_random(&r) % 1000) / 1000.0f;
        d->p_raw = (float)(next_random(&r) % 1000) / 1000.0f;
        d->rank = (int32_t)(next_random(&r) % 5);
        d->entropy = (float)(next_random(&r) % 1000) / 100.0f;
        d->n_alternatives = (int)(i % (CW_N_ALTERNATIVES + 1));
        for (int a = 0; a < d->n_alternatives; a++) {
            d->alternatives[a].id = (int32_t)(next_random(&r) % 150000);
            d->alternatives[a].p_raw = 1.0f / (float)(a + 2);
            d->alternatives[a].p = a % 2 ? 0.0f : 1.0f / (float)(a + 3);
        }
        t[i].n_text = next_random(&r) % 12;
        t[i].thinking = i % 5 == 0;
        t[i].mark = i % 16;
    }
    return t;
}

void expect_tokens(const struct cw_store_token *got, const struct cw_store_token *want, size_t n) {
    for (size_t i = 0; i < n; i++) {
        ck_assert_int_eq(got[i].draw.id, want[i].draw.id);
        ck_assert_msg(memcmp(&got[i].draw, &want[i].draw, sizeof got[i].draw) == 0, "token %zu", i);
        ck_assert_uint_eq(got[i].n_text, want[i].n_text);
        ck_assert_int_eq(got[i].thinking, want[i].thinking);
        ck_assert_uint_eq(got[i].mark, want[i].mark);
    }
}

int64_t put_chat(struct cw_store *s, int n, unsigned seed) {
    struct cw_store_conversation c = {.id = cw_store_new_id(s),
                                      .model = {"Tiny", 4},
                                      .hash = {"abcd", 4},
                                      .system = {"Be brief.", 9}};
    int64_t parent = 0;
    ck_assert_int_eq(cw_store_put_conversation(s, &c, NULL), CW_OK);
    for (int i = 0; i < n; i++) {
        struct cw_buf text = {0};
        chat_text(seed, i, &text);
        struct cw_store_message m = {
            .id = cw_store_new_id(s),
            .parent = parent,
            .conversation = c.id,
            .role = i % 2 ? CW_STORE_REPLY : CW_STORE_USER,
            .text = {text.data, text.len},
            .done = true,
            .seed = seed,
        };
        struct cw_store_token *tokens = i % 2 ? make_tokens(20, seed + (unsigned)i) : NULL;
        m.tokens = tokens;
        m.n_tokens = tokens ? 20 : 0;
        some_sampling(&m.sampling);
        ck_assert_int_eq(cw_store_put_message(s, &m, NULL), CW_OK);
        free(tokens);
        cw_buf_free(&text);
        parent = m.id;
    }
    ck_assert_int_eq(cw_store_set_leaf(s, c.id, parent, NULL), CW_OK);
    return c.id;
}
