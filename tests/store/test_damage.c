/* SPDX-License-Identifier: MIT
 *
 * Damaged stores: one flipped bit, or the file cut, at many places of the database and of its log.
 * The program starts, puts the damaged file aside as it was, and brings back every message whose
 * page is whole; it never hands out a text that was not written.
 *
 * CHINWAG_PLACES sets how many places are tried (60 in the suite, see campaign.sh for more).
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/store/support.h"

enum { N_CHATS = 12, N_MESSAGES = 50, TOTAL = N_CHATS * N_MESSAGES, PAGE = 4096 };

static char *base; /* folder with the whole files */
static char *dir;  /* with the damaged ones */
static char *texts[TOTAL];
static char *files[2]; /* database and log */
static size_t sizes[2];

static const char *const names[2] = {"conversations.db", "conversations.db-wal"};

static int n_places(void) {
    const char *given = getenv("CHINWAG_PLACES");
    int n = given ? atoi(given) : 0;
    return n > 0 ? n : 60;
}

/* Whole files: most of the rows in the database, the last ones in the log, as after a kill. */
static void setup(void) {
    base = make_dir();
    struct cw_store *s = open_store(base);
    for (unsigned c = 0; c < N_CHATS; c++) {
        if (c == N_CHATS - 2) {
            close_store(s, CW_OK); /* writes the log back */
            s = open_store(base);
        }
        put_chat(s, N_MESSAGES, c);
        for (int i = 0; i < N_MESSAGES; i++) {
            struct cw_buf text = {0};
            chat_text(c, i, &text);
            texts[(int)c * N_MESSAGES + i] = cw_buf_take(&text);
        }
    }
    expect_saved(s);
    for (int f = 0; f < 2; f++) {
        char *path = path_in(base, names[f]);
        files[f] = read_file(path, &sizes[f]);
        ck_assert_msg(files[f] != NULL && sizes[f] > 20 * PAGE, "%s", path);
        free(path);
    }
    close_store(s, CW_OK);
}

static void teardown(void) {
    for (int i = 0; i < TOTAL; i++) {
        free(texts[i]);
    }
    free(files[0]);
    free(files[1]);
    drop_dir(base);
}

static int find_text(struct cw_str text) {
    for (int i = 0; i < TOTAL; i++) {
        if (cw_str_eq(text, texts[i])) {
            return i;
        }
    }
    return -1;
}

/* Which messages have to come back: those whose text stands in one piece in a whole page of what is
 * left. The log's pages count as far as it is whole. */
static void must_come(const char *data, size_t n, size_t hurt, bool *must) {
    for (int i = 0; i < TOTAL; i++) {
        const char *at = data;
        size_t len = strlen(texts[i]);
        while (!must[i] && (at = memmem(at, n - (size_t)(at - data), texts[i], len)) != NULL) {
            size_t page = (size_t)(at - data) / PAGE;
            must[i] = page != hurt / PAGE && ((size_t)(at - data) + len) / PAGE == page &&
                      (page + 1) * PAGE <= n;
            at++;
        }
    }
}

struct outcome {
    int found, lost_seen, mended;
    size_t n_recovered, n_lost;
};

/* Everything that the store in `dir` has, each text checked to be one that was written. */
static struct outcome read_all(bool *have) {
    struct outcome o = {0};
    struct cw_store *s = open_store(dir);
    struct cw_store_event *ev;
    struct cw_store_event *conversations = list(s, "");
    for (size_t i = 0; i < conversations->n_hits; i++) {
        struct cw_store_event *c = load(s, conversations->hits[i].conversation.id);
        for (size_t k = 0; k < c->n_messages; k++) {
            const struct cw_store_message *m = &c->messages[k];
            if (m->lost) {
                ck_assert_uint_eq(m->text.len, 0);
                o.lost_seen++;
                continue;
            }
            int which = find_text(m->text);
            ck_assert_msg(which >= 0, "a text that was never written: %.*s", (int)m->text.len,
                          m->text.data);
            ck_assert_int_eq(m->role, which % 2 ? CW_STORE_REPLY : CW_STORE_USER);
            if (m->n_tokens > 0) {
                struct cw_store_token *want =
                    make_tokens(20, (unsigned)(which / N_MESSAGES + which % N_MESSAGES));
                ck_assert_uint_eq(m->n_tokens, 20);
                expect_tokens(m->tokens, want, 20);
                free(want);
            }
            o.found += !have[which];
            have[which] = true;
        }
        cw_store_event_free(c);
    }
    cw_store_event_free(conversations);
    cw_store_event_free(list(s, "message")); /* the index can be searched */
    while ((ev = cw_store_next(s)) != NULL) {
        if (ev->kind == CW_STORE_MENDED) {
            o.mended++;
            o.n_recovered = ev->n_recovered;
            o.n_lost = ev->n_lost;
        }
        cw_store_event_free(ev);
    }
    /* and it goes on */
    int64_t more = put_chat(s, 1, 0);
    ev = load(s, more);
    ck_assert_uint_eq(ev->n_messages, 1);
    cw_store_event_free(ev);
    close_store(s, CW_OK);
    return o;
}

/* The damaged file is still there, byte for byte. */
static void expect_aside(int which, const char *data, size_t n) {
    char command[8192];
    char *copy = path_in(dir, "as-it-was");
    write_file(copy, data, n);
    snprintf(command, sizeof command, "cmp -s '%s' '%s'/conversations.db.damaged-*[0-9]%s", copy,
             dir, which == 1 ? "-wal" : "");
    ck_assert_msg(system(command) == 0, "the damaged file is not kept as it was");
    unlink(copy);
    free(copy);
}

static uint32_t rnd(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 4;
}

/* Damage files[which] at `place`: cut there, or one bit of that byte flipped. */
static struct outcome try_place(int which, size_t place, int bit, bool with_log, bool *have,
                                bool *must) {
    dir = make_dir();
    char *damaged = cw_malloc(sizes[which]);
    size_t n = bit < 0 ? place : sizes[which];
    memcpy(damaged, files[which], sizes[which]);
    if (bit >= 0) {
        damaged[place] ^= (char)(1 << bit);
    }
    for (int f = 0; f < (with_log ? 2 : 1); f++) {
        char *path = path_in(dir, names[f]);
        write_file(path, f == which ? damaged : files[f], f == which ? n : sizes[f]);
        free(path);
    }
    memset(must, 0, TOTAL * sizeof *must);
    if (which == 0) {
        must_come(damaged, n, bit < 0 ? SIZE_MAX - PAGE : place, must);
    } else {
        must_come(files[0], sizes[0], SIZE_MAX - PAGE, must);
    }
    memset(have, 0, TOTAL * sizeof *have);
    struct outcome o = read_all(have);
    if (o.mended > 0) {
        expect_aside(which, damaged, n);
    }
    free(damaged);
    drop_dir(dir);
    return o;
}

static void check_place(int which, size_t place, int bit, bool with_log) {
    bool have[TOTAL], must[TOTAL];
    char what[100];
    snprintf(what, sizeof what, "%s of %s at %zu bit %d%s", bit < 0 ? "cut" : "flip", names[which],
             place, bit, with_log ? " with log" : "");
    struct outcome o = try_place(which, place, bit, with_log, have, must);
    int expected = with_log ? TOTAL : TOTAL - 2 * N_MESSAGES;
    int missing = 0;
    for (int i = 0; i < TOTAL; i++) {
        ck_assert_msg(!must[i] || have[i], "%s: message %d is lost: %s", what, i, texts[i]);
        missing += i < expected && !have[i];
    }
    if (bit >= 0) {
        ck_assert_msg(o.found >= expected * 95 / 100, "%s: only %d of %d", what, o.found, expected);
        ck_assert_msg(missing == 0 || o.n_lost > 0, "%s: %d lost, and it is not said", what,
                      missing);
    }
    if (o.mended > 0) {
        ck_assert_msg(o.n_recovered == (size_t)o.found, "%s: says %zu, has %d", what, o.n_recovered,
                      o.found);
    }
    if (getenv("CHINWAG_VERBOSE")) {
        printf("%s: found %d, missing %d, mended %d, said lost %zu\n", what, o.found, missing,
               o.mended, o.n_lost);
    }
}

START_TEST(flips_of_the_database) {
    uint32_t state = 12345;
    for (int i = 0; i < n_places() / 2; i++) {
        size_t place = rnd(&state) % sizes[0];
        check_place(0, place, (int)(rnd(&state) % 8), i % 2);
    }
}
END_TEST

/* The places everything hangs on: the file's header and the schema's page. */
START_TEST(flips_of_the_header) {
    uint32_t state = 777;
    for (int i = 0; i < n_places() / 6; i++) {
        check_place(0, rnd(&state) % 112, (int)(rnd(&state) % 8), false);
    }
}
END_TEST

START_TEST(flips_of_the_log) {
    uint32_t state = 4242;
    for (int i = 0; i < n_places() / 6; i++) {
        /* the header's salts, the last commit, anywhere */
        size_t place = i == 0 ? 17 : i == 1 ? sizes[1] - 2000 : rnd(&state) % sizes[1];
        check_place(1, place, (int)(rnd(&state) % 8), true);
    }
}
END_TEST

START_TEST(cuts) {
    uint32_t state = 99;
    static const size_t special[] = {0, 1, 15, 16, 99, 100, 511, 512, 4095, 4096, 4097, 8192};
    for (int i = 0; i < n_places() / 6; i++) {
        size_t place = i < 4 ? special[rnd(&state) % (sizeof special / sizeof *special)]
                             : rnd(&state) % sizes[0];
        check_place(0, place, -1, i % 3 == 2);
    }
}
END_TEST

/* Whole files need no mending. */
START_TEST(whole) {
    for (int with_log = 0; with_log < 2; with_log++) {
        bool have[TOTAL] = {0};
        dir = make_dir();
        for (int f = 0; f <= with_log; f++) {
            char *path = path_in(dir, names[f]);
            write_file(path, files[f], sizes[f]);
            free(path);
        }
        struct outcome o = read_all(have);
        ck_assert_int_eq(o.mended, 0);
        ck_assert_int_eq(o.found, with_log ? TOTAL : TOTAL - 2 * N_MESSAGES);
        ck_assert_uint_eq(count_files(dir, "conversations.db.damaged"), 0);
        drop_dir(dir);
    }
}
END_TEST

/* A store too large to be looked through before its first use: a changed text is not shown, and is
 * found although nobody asks for it. */
START_TEST(large) {
    enum { N = 36, BYTES = 1000000 };
    dir = make_dir();
    struct cw_store *s = open_store(dir);
    struct cw_store_conversation c = {.id = cw_store_new_id(s)};
    struct cw_store_message m = {.conversation = c.id, .done = true};
    char *text = cw_malloc(BYTES);
    some_sampling(&m.sampling);
    cw_store_put_conversation(s, &c, NULL);
    for (int i = 0; i < N; i++) {
        memset(text, 'a' + i % 26, BYTES); /* no word of these is worth a place in the index */
        snprintf(text, BYTES, "<message %d>", i);
        text[strlen(text)] = ' ';
        m.parent = m.id;
        m.id = cw_store_new_id(s);
        m.role = i % 2 ? CW_STORE_REPLY : CW_STORE_USER;
        m.text = (struct cw_str){text, BYTES};
        ck_assert_int_eq(cw_store_put_message(s, &m, NULL), CW_OK);
        expect_saved(s);
    }
    close_store(s, CW_OK);
    char *path = path_in(dir, names[0]);
    size_t n;
    char *data = read_file(path, &n);
    ck_assert_uint_gt(n, 33 << 20);
    char *at = memmem(data, n, "<message 20>", 12);
    ck_assert_ptr_nonnull(at);
    for (int asked = 0; asked < 2; asked++) {
        at[50] ^= 4; /* within the text */
        write_file(path, data, n);
        s = open_store(dir);
        struct cw_store_event *ev;
        if (asked) {
            ev = load(s, c.id);
            ck_assert_uint_eq(ev->n_messages, N);
            for (int i = 0; i < N; i++) {
                const struct cw_store_message *got = &ev->messages[i];
                ck_assert_int_eq(got->lost, i == 20);
                size_t k = 13; /* one check a message: a check a byte takes minutes */
                while (k < got->text.len && got->text.data[k] == 'a' + i % 26) {
                    k++;
                }
                ck_assert_msg(k >= got->text.len, "message %d, byte %zu", i, k);
            }
            cw_store_event_free(ev);
        }
        ev = await_event(s, CW_STORE_MENDED);
        ck_assert_uint_eq(ev->n_lost, 1);
        ck_assert_uint_eq(ev->n_recovered, N - 1);
        cw_store_event_free(ev);
        close_store(s, CW_OK);
        at[50] ^= 4;
    }
    free(text);
    free(data);
    free(path);
    drop_dir(dir);
}
END_TEST

/* A store cut to nothing, of which nothing is left, is said; one that never was is not. */
START_TEST(emptied) {
    for (int there = 0; there < 2; there++) {
        dir = make_dir();
        if (there) {
            char *path = path_in(dir, names[0]);
            write_file(path, "", 0);
            free(path);
        }
        struct cw_store *s = open_store(dir);
        cw_store_list(s, "", 10, 3);
        struct cw_store_event *ev = cw_store_wait(s, 3);
        ck_assert_int_eq(ev->kind, CW_STORE_LIST);
        ck_assert_uint_eq(ev->n_hits, 0);
        cw_store_event_free(ev);
        int said = 0;
        while ((ev = cw_store_next(s)) != NULL) {
            said += ev->kind == CW_STORE_NOTICE && strstr(ev->text, "was empty") != NULL;
            cw_store_event_free(ev);
        }
        ck_assert_int_eq(said, there);
        close_store(s, CW_OK);
        drop_dir(dir);
    }
}
END_TEST

/* A log cut anywhere is what a kill leaves: no damage, and what stands before the cut counts. */
START_TEST(cut_logs) {
    uint32_t state = 31;
    for (int i = 0; i < n_places() / 12; i++) {
        bool have[TOTAL], must[TOTAL];
        struct outcome o = try_place(1, rnd(&state) % sizes[1], -1, true, have, must);
        ck_assert_int_eq(o.mended, 0);
        ck_assert_int_ge(o.found, TOTAL - 2 * N_MESSAGES);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("store-damage");
    TCase *tc = tcase_create("damage");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 1200);
    tcase_add_test(tc, whole);
    tcase_add_test(tc, flips_of_the_database);
    tcase_add_test(tc, flips_of_the_header);
    tcase_add_test(tc, flips_of_the_log);
    tcase_add_test(tc, cuts);
    tcase_add_test(tc, cut_logs);
    tcase_add_test(tc, emptied);
    tcase_add_test(tc, large);
    suite_add_tcase(suite, tc);
    SRunner *sr = srunner_create(suite);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? 0 : 1;
}
