/* SPDX-License-Identifier: MIT
 *
 * core/store: what is written is read again, in lists, searches and whole conversations; growing
 * replies; deleting; two programs.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chinwag/utf8.h"
#include "core/store/rows.h"
#include "tests/store/support.h"

static char *dir;

static void setup(void) {
    dir = make_dir();
}

static void teardown(void) {
    drop_dir(dir);
}

START_TEST(round_trip) {
    struct cw_store *s = open_store(dir);
    struct cw_store_token *tokens = make_tokens(700, 3);
    struct cw_store_change changes[2] = {{.token = 3, .offset = 10}, {.token = 9, .offset = 44}};
    for (int i = 0; i < 2; i++) {
        some_sampling(&changes[i].from);
        some_sampling(&changes[i].to);
        changes[i].to.temp = 0.1f * (float)(i + 1);
        changes[i].to.n_bias = 2;
        changes[i].to.bias[1].id = 77;
        changes[i].to.bias[1].bias = -1.5f;
    }
    struct cw_store_conversation c = {
        .id = cw_store_new_id(s),
        .created_ms = 1700000000000,
        .updated_ms = 1700000000001,
        .model = str("Model \xc3\xa9"),
        .hash = str("0123"),
        .system = str("System\nprompt"),
        .settings = {"a\0b", 3},
    };
    struct cw_store_message ask = {.id = cw_store_new_id(s),
                                   .conversation = c.id,
                                   .created_ms = 1700000000002,
                                   .text = str("## What is *this*, then?\nMore."),
                                   .done = true};
    struct cw_store_message reply = {
        .id = cw_store_new_id(s),
        .parent = ask.id,
        .conversation = c.id,
        .role = CW_STORE_REPLY,
        .created_ms = 1700000000003,
        .text = {"nul \0 and \xff\xfe bytes", 19},
        .reasoning = str("hm"),
        .tokens = tokens,
        .n_tokens = 700,
        .changes = changes,
        .n_changes = 2,
        .done = true,
        .stop = 2,
        .seed = 4000000000u,
        .first_position = 12345678901,
        .figures = {.n_prompt = 5, .n_tokens = 700, .tps = 12.5, .last_s = 1e9},
        .model = str("Model \xc3\xa9"),
        .hash = str("0123"),
        .arithmetic = str("1 exact"),
        .extra = {"\0x", 2},
    };
    some_sampling(&ask.sampling);
    some_sampling(&reply.sampling);
    reply.sampling.temp = 1.2345678f;
    ck_assert_int_eq(cw_store_put_conversation(s, &c, NULL), CW_OK);
    ck_assert_int_eq(cw_store_put_message(s, &ask, NULL), CW_OK);
    ck_assert_int_eq(cw_store_put_message(s, &reply, NULL), CW_OK);
    ck_assert_int_eq(cw_store_set_leaf(s, c.id, reply.id, NULL), CW_OK);
    for (int again = 0; again < 2; again++) { /* from this run, and from the next */
        struct cw_store_event *ev = load(s, c.id);
        ck_assert(ev->owned);
        ck_assert(str_is(ev->conversation.title, "What is *this*, then?"));
        ck_assert(str_is(ev->conversation.model, "Model \xc3\xa9"));
        ck_assert(str_is(ev->conversation.system, "System\nprompt"));
        ck_assert_uint_eq(ev->conversation.settings.len, 3);
        ck_assert_int_eq(memcmp(ev->conversation.settings.data, "a\0b", 3), 0);
        ck_assert_int_eq(ev->conversation.leaf, reply.id);
        ck_assert_int_eq(ev->conversation.created_ms, 1700000000000);
        ck_assert_uint_eq(ev->n_messages, 2);
        const struct cw_store_message *m = &ev->messages[1];
        ck_assert_int_eq(ev->messages[0].id, ask.id);
        ck_assert_int_eq(m->id, reply.id);
        ck_assert_int_eq(m->parent, ask.id);
        ck_assert_int_eq(m->role, CW_STORE_REPLY);
        ck_assert_uint_eq(m->text.len, 19);
        ck_assert_int_eq(memcmp(m->text.data, reply.text.data, 19), 0);
        ck_assert(str_is(m->reasoning, "hm"));
        ck_assert(m->done && !m->lost);
        ck_assert_int_eq(m->stop, 2);
        ck_assert_uint_eq(m->seed, 4000000000u);
        ck_assert_uint_eq(m->first_position, 12345678901);
        ck_assert_int_eq(memcmp(&m->figures, &reply.figures, sizeof m->figures), 0);
        ck_assert_int_eq(memcmp(&m->sampling, &reply.sampling, sizeof m->sampling), 0);
        ck_assert(str_is(m->arithmetic, "1 exact"));
        ck_assert_uint_eq(m->extra.len, 2);
        ck_assert_uint_eq(m->n_tokens, 700);
        expect_tokens(m->tokens, tokens, 700);
        ck_assert_uint_eq(m->n_changes, 2);
        for (int i = 0; i < 2; i++) {
            ck_assert_int_eq(memcmp(&m->changes[i], &changes[i], sizeof changes[i]), 0);
        }
        cw_store_event_free(ev);
        close_store(s, CW_OK);
        s = open_store(dir);
    }
    close_store(s, CW_OK);
    free(tokens);
}
END_TEST

START_TEST(private_modes) {
    struct cw_buf deep = {0};
    struct stat st;
    cw_buf_printf(&deep, "%s/a/b", dir);
    struct cw_store *s = open_store(deep.data);
    put_chat(s, 2, 1);
    expect_saved(s);
    static const char *const names[] = {"conversations.db", "conversations.db-wal",
                                        "conversations.lock"};
    ck_assert_int_eq(stat(deep.data, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0700);
    for (size_t i = 0; i < 3; i++) {
        char *path = path_in(deep.data, names[i]);
        ck_assert_msg(stat(path, &st) == 0, "%s", path);
        ck_assert_uint_eq(st.st_mode & 0777, 0600);
        free(path);
    }
    close_store(s, CW_OK);
    cw_buf_free(&deep);
}
END_TEST

START_TEST(grows_by_pieces) {
    struct cw_store *s = open_store(dir);
    struct cw_store_token *tokens = make_tokens(90, 5);
    int64_t c = put_chat(s, 1, 2);
    struct cw_store_event *ev = load(s, c);
    struct cw_store_message m = {.id = cw_store_new_id(s),
                                 .parent = ev->messages[0].id,
                                 .conversation = c,
                                 .role = CW_STORE_REPLY};
    struct cw_buf want = {0};
    cw_store_event_free(ev);
    some_sampling(&m.sampling);
    ck_assert_int_eq(cw_store_put_message(s, &m, NULL), CW_OK);
    for (size_t i = 0; i < 90; i++) {
        char piece[32];
        snprintf(piece, sizeof piece, "piece%zu ", i);
        cw_buf_puts(&want, piece);
        ck_assert_int_eq(cw_store_append(s, m.id, piece, strlen(piece), i < 10 ? "t" : "", i < 10,
                                         &tokens[i], 1, NULL),
                         CW_OK);
        if (i == 30 || i == 60) {
            expect_saved(s);
        }
    }
    expect_saved(s);
    for (int state = 0; state < 4; state++) { /* growing, done, growing again, done */
        ev = load(s, c);
        ck_assert_uint_eq(ev->n_messages, 2);
        const struct cw_store_message *got = &ev->messages[1];
        ck_assert_int_eq(got->done, state % 2);
        ck_assert(cw_str_eq(got->text, want.data));
        ck_assert(str_is(got->reasoning, "tttttttttt"));
        ck_assert_uint_eq(got->n_tokens, state < 2 ? 90 : 100);
        expect_tokens(got->tokens, tokens, 90);
        cw_store_event_free(ev);
        ev = list(s, "piece89");
        ck_assert_uint_eq(ev->n_hits, state != 0);
        cw_store_event_free(ev);
        const struct cw_figures f = {.n_tokens = 100};
        if (state == 1) {
            ck_assert_int_eq(cw_store_resume(s, m.id, NULL), CW_OK);
            cw_buf_puts(&want, "wonderful");
            ck_assert_int_eq(cw_store_append(s, m.id, "wonderful", 9, NULL, 0, tokens, 10, NULL),
                             CW_OK);
        } else {
            ck_assert_int_eq(cw_store_finish(s, m.id, 1, &f, NULL), CW_OK);
        }
    }
    ev = list(s, "wonderful");
    ck_assert_uint_eq(ev->n_hits, 1);
    cw_store_event_free(ev);
    ck_assert_int_eq(cw_store_set_extra(s, m.id, "\0extra", 6, NULL), CW_OK);
    ev = load(s, c);
    ck_assert_uint_eq(ev->messages[1].extra.len, 6);
    ck_assert_uint_eq(ev->messages[1].n_tokens, 100);
    cw_store_event_free(ev);
    close_store(s, CW_OK);
    cw_buf_free(&want);
    free(tokens);
}
END_TEST

/* A message put again replaces the first one everywhere. */
START_TEST(put_again) {
    struct cw_store *s = open_store(dir);
    int64_t c = put_chat(s, 2, 2);
    struct cw_store_event *ev = load(s, c);
    struct cw_store_message m = ev->messages[1];
    m.text = str("Entirely elsewhere");
    m.n_tokens = 0;
    ck_assert_int_eq(cw_store_put_message(s, &m, NULL), CW_OK);
    cw_store_event_free(ev);
    ev = load(s, c);
    ck_assert_uint_eq(ev->n_messages, 2);
    ck_assert_uint_eq(ev->conversation.n_messages, 2);
    ck_assert(str_is(ev->messages[1].text, "Entirely elsewhere"));
    ck_assert_uint_eq(ev->messages[1].n_tokens, 0);
    cw_store_event_free(ev);
    ev = list(s, "elsewhere");
    ck_assert_uint_eq(ev->n_hits, 1);
    cw_store_event_free(ev);
    ev = list(s, "\"Message 1 of\"");
    ck_assert_uint_eq(ev->n_hits, 0);
    cw_store_event_free(ev);
    close_store(s, CW_OK);
}
END_TEST

START_TEST(lists_and_searches) {
    struct cw_store *s = open_store(dir);
    char name[CW_STORE_NAME];
    int64_t ids[5];
    for (unsigned i = 0; i < 5; i++) {
        ids[i] = put_chat(s, 4, i);
        expect_saved(s);
    }
    ck_assert_int_eq(cw_store_rename(s, ids[3], "Gr\xc3\xbcne \x1b[2J Title", 17, NULL), CW_OK);
    struct cw_store_event *ev = list(s, "");
    ck_assert_uint_eq(ev->n_hits, 5);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(ev->hits[i].conversation.id, ids[4 - i]); /* the latest first */
        ck_assert_uint_eq(ev->hits[i].conversation.n_messages, 4);
    }
    ck_assert(str_is(ev->hits[1].conversation.title, "Gr\xc3\xbcne \\x1B[2J Title"));
    cw_store_event_free(ev);
    cw_store_name(ids[2], name);
    const struct {
        const char *query;
        size_t n;
    } cases[] = {{"message chat3", 1}, {"CHAT3", 1},     {"chat", 5}, /* the beginning of a word
                                                                         that is being typed */
                 {"cha message", 0},                /* only the last word may be one */
                 {"title", 1},         {"tiny", 5}, /* the model */
                 {"nowhere", 0},       {"\"", 0},        {"chat3\"", 1}, {"OR AND NOT", 0},
                 {"text:chat3", 0},    {"chat3 * ^", 1}, {name, 1},      {"   ", 5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ev = list(s, cases[i].query);
        ck_assert_msg(ev->n_hits == cases[i].n, "'%s' found %zu", cases[i].query, ev->n_hits);
        cw_store_event_free(ev);
    }
    ev = list(s, "chat3");
    ck_assert_ptr_nonnull(memmem(ev->hits[0].snippet.data, ev->hits[0].snippet.len, "chat3", 5));
    ck_assert(cw_utf8_valid(ev->hits[0].snippet.data, ev->hits[0].snippet.len));
    cw_store_event_free(ev);
    /* by name, and by the beginning of one */
    for (size_t n = CW_STORE_NAME - 1; n >= 5; n -= 4) {
        name[n] = '\0';
        cw_store_load_name(s, name, true, n);
        ev = cw_store_wait(s, n);
        ck_assert_int_eq(ev->kind, CW_STORE_LOADED);
        ck_assert_int_eq(ev->conversation.id, ids[2]);
        cw_store_event_free(ev);
    }
    cw_store_load_name(s, "", true, 50);
    ev = cw_store_wait(s, 50);
    ck_assert_int_eq(ev->conversation.id, ids[4]); /* the last one */
    cw_store_event_free(ev);
    cw_store_load_name(s, "../../etc/passwd", true, 51);
    ev = cw_store_wait(s, 51);
    ck_assert_int_eq(ev->kind, CW_STORE_FAILED);
    ck_assert_int_eq(ev->code, CW_ENOENT);
    cw_store_event_free(ev);
    close_store(s, CW_OK);
}
END_TEST

START_TEST(deletes_without_a_trace) {
    struct cw_store *s = open_store(dir);
    int64_t ids[6];
    for (unsigned i = 0; i < 6; i++) {
        ids[i] = put_chat(s, 30, i);
    }
    struct cw_store_message m = {.id = cw_store_new_id(s),
                                 .conversation = ids[2],
                                 .text = str("zyzzyva quokkaword"),
                                 .reasoning = str("xenolithic"),
                                 .done = true};
    some_sampling(&m.sampling);
    ck_assert_int_eq(cw_store_put_message(s, &m, NULL), CW_OK);
    ck_assert_int_eq(cw_store_rename(s, ids[2], "jabberwocky", 11, NULL), CW_OK);
    expect_saved(s);
    ck_assert(dir_holds(dir, "quokkaword") && dir_holds(dir, "xenolithic"));
    ck_assert(dir_holds(dir, "jabberwocky"));
    ck_assert_int_eq(cw_store_delete(s, ids[2], NULL), CW_OK);
    struct cw_store_event *ev = list(s, "");
    ck_assert_uint_eq(ev->n_hits, 5);
    cw_store_event_free(ev);
    ev = list(s, "quokkaword");
    ck_assert_uint_eq(ev->n_hits, 0);
    cw_store_event_free(ev);
    cw_store_load(s, ids[2], 5);
    ev = cw_store_wait(s, 5);
    ck_assert_int_eq(ev->kind, CW_STORE_FAILED);
    cw_store_event_free(ev);
    /* undone, and done again */
    ck_assert_int_eq(cw_store_undelete(s, ids[2], NULL), CW_OK);
    ev = list(s, "quokkaword");
    ck_assert_uint_eq(ev->n_hits, 1);
    cw_store_event_free(ev);
    ck_assert_int_eq(cw_store_delete(s, ids[2], NULL), CW_OK);
    close_store(s, CW_OK);
    static const char *const words[] = {"quokkaword", "zyzzyva",     "xenolithic",
                                        "chat2:",     "jabberwocky", "quokka"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        ck_assert_msg(!dir_holds(dir, words[i]), "%s is still there", words[i]);
    }
    s = open_store(dir);
    for (unsigned i = 0; i < 6; i++) {
        if (i != 2) {
            ev = load(s, ids[i]);
            ck_assert_uint_eq(ev->n_messages, 30);
            cw_store_event_free(ev);
        }
    }
    ev = list(s, "chat5");
    ck_assert_uint_eq(ev->n_hits, 1);
    cw_store_event_free(ev);
    ck_assert_int_eq(cw_store_delete_all(s, NULL), CW_OK);
    close_store(s, CW_OK);
    ck_assert(!dir_holds(dir, "chat5:") && !dir_holds(dir, "lamps"));
    s = open_store(dir);
    ev = list(s, "");
    ck_assert_uint_eq(ev->n_hits, 0);
    cw_store_event_free(ev);
    close_store(s, CW_OK);
}
END_TEST

/* Rows of the first table besides the version. */
static int64_t count_marks(sqlite3 *db) {
    sqlite3_stmt *st = NULL;
    ck_assert_int_eq(sqlite3_prepare_v2(db, "SELECT count(*) FROM meta WHERE id<>1", -1, &st, NULL),
                     SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(st), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    return n;
}

/* A removal that was killed after the rows were gone is finished by the next run. */
START_TEST(removal_is_finished_later) {
    const struct store_cell cells[STORE_MAX_COLUMNS] = {
        [META_ID] = {.i = STORE_META_PURGE}, [META_VALUE] = {.p = "purge", .n = 5}};
    char *path = path_in(dir, "conversations.db");
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    struct cw_store *s = open_store(dir);
    put_chat(s, 10, 1);
    expect_saved(s);
    close_store(s, CW_OK);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    char *put = store_row_put_sql(STORE_META);
    ck_assert_int_eq(sqlite3_prepare_v2(db, put, -1, &st, NULL), SQLITE_OK);
    store_row_bind(st, STORE_META, cells);
    ck_assert_int_eq(sqlite3_step(st), SQLITE_DONE);
    sqlite3_finalize(st);
    free(put);
    /* what a split page may hold: free pages with words in them */
    ck_assert_int_eq(
        sqlite3_exec(db,
                     "PRAGMA secure_delete=OFF; CREATE TABLE t(x);"
                     "INSERT INTO t VALUES(replace(hex(zeroblob(400)),'0','quokkaword'));"
                     "DROP TABLE t",
                     NULL, NULL, NULL),
        SQLITE_OK);
    ck_assert_int_eq(count_marks(db), 1);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    ck_assert(dir_holds(dir, "quokkaword"));
    s = open_store(dir);
    cw_store_event_free(await_event(s, CW_STORE_OPEN));
    close_store(s, CW_OK);
    ck_assert(!dir_holds(dir, "quokkaword"));
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_int_eq(count_marks(db), 0);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    free(path);
}
END_TEST

static int64_t went[4];
static int n_went;

static int note_gone(void *arg, int64_t conversation, struct cw_err *err) {
    ck_assert(arg == dir);
    ck_assert_int_lt(n_went, 4);
    went[n_went++] = conversation;
    return n_went == 2 ? cw_fail(err, CW_EIO, "the other file stays") : CW_OK;
}

/* What a run deleted that was then killed is removed by the next one, as soon as there is time;
 * what that one deletes itself can be brought back until its end. */
START_TEST(deleted_by_one_that_was_killed) {
    int64_t ids[3];
    const struct cw_store_options opt = {.dir = dir, .gone = note_gone, .gone_arg = dir};
    struct cw_err err = {0};
    struct cw_store *s = open_store(dir);
    for (unsigned i = 0; i < 3; i++) {
        ids[i] = put_chat(s, 20, i);
    }
    close_store(s, CW_OK);
    pid_t child = fork();
    if (child == 0) {
        s = open_store(dir);
        cw_store_delete(s, ids[0], NULL);
        _exit(cw_store_wait_saved(s, NULL) == CW_OK ? 0 : 1); /* without destroying it */
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert(dir_holds(dir, "chat0:"));
    ck_assert_int_eq(cw_store_create(&s, &opt, &err), CW_OK);
    cw_store_event_free(await_event(s, CW_STORE_OPEN));
    cw_store_delete(s, ids[1], NULL);
    expect_saved(s);
    for (int i = 0; i < 1200 && dir_holds(dir, "chat0:"); i++) {
        usleep(100000);
    }
    ck_assert(!dir_holds(dir, "chat0:"));
    ck_assert_int_eq(cw_store_undelete(s, ids[1], NULL), CW_OK);
    struct cw_store_event *ev = load(s, ids[1]);
    ck_assert_uint_eq(ev->n_messages, 20);
    cw_store_event_free(ev);
    ck_assert_int_eq(n_went, 1);
    ck_assert_int_eq(cw_store_delete(s, ids[1], NULL), CW_OK);
    ck_assert_int_eq(cw_store_destroy(s, &err), CW_EIO); /* what is not removed is told, */
    ck_assert_str_eq(err.text, "the other file stays");
    ck_assert(!dir_holds(dir, "chat1:")); /* and the rest goes all the same */
    ck_assert_int_eq(n_went, 2);
    ck_assert_int_eq(went[0], ids[0]);
    ck_assert_int_eq(went[1], ids[1]);
    s = open_store(dir);
    ev = load(s, ids[2]);
    ck_assert_uint_eq(ev->n_messages, 20);
    cw_store_event_free(ev);
    close_store(s, CW_OK);
}
END_TEST

/* A conversation of many megabytes among others: no word of it stays, in whatever page. */
START_TEST(deletes_a_huge_one) {
    enum { N = 120, WORDS = 8000 };
    struct cw_store *s = open_store(dir);
    int64_t others[2] = {put_chat(s, 50, 1), 0};
    struct cw_store_conversation c = {.id = cw_store_new_id(s)};
    struct cw_store_message m = {.conversation = c.id, .done = true};
    some_sampling(&m.sampling);
    cw_store_put_conversation(s, &c, NULL);
    for (int i = 0; i < N; i++) {
        struct cw_buf text = {0};
        cw_buf_printf(&text, "begin%dquokka ", i);
        for (int k = 0; k < WORDS; k++) {
            cw_buf_printf(&text, "word%dwallaby ", (i * 37 + k * 101) % 30000);
        }
        cw_buf_printf(&text, "end%dquokka", i);
        m.parent = m.id;
        m.id = cw_store_new_id(s);
        m.role = i % 2 ? CW_STORE_REPLY : CW_STORE_USER;
        m.text = (struct cw_str){text.data, text.len};
        ck_assert_int_eq(cw_store_put_message(s, &m, NULL), CW_OK);
        cw_buf_free(&text);
        if (i % 20 == 7) {
            others[1] = put_chat(s, 10, (unsigned)i);
            expect_saved(s);
        }
    }
    expect_saved(s);
    struct cw_store_event *ev = list(s, "end100quokka");
    ck_assert_uint_eq(ev->n_hits, 1);
    cw_store_event_free(ev);
    ck_assert_int_eq(cw_store_delete(s, c.id, NULL), CW_OK);
    close_store(s, CW_OK);
    static const char *const words[] = {"quokka", "wallaby", "word2999", "begin7"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        ck_assert_msg(!dir_holds(dir, words[i]), "%s is still there", words[i]);
    }
    s = open_store(dir);
    for (int i = 0; i < 2; i++) {
        ev = load(s, others[i]);
        ck_assert_uint_eq(ev->n_messages, i == 0 ? 50 : 10);
        cw_store_event_free(ev);
    }
    close_store(s, CW_OK);
}
END_TEST

/* Two programs on one conversation: the second adds branches and changes nothing. */
START_TEST(two_programs) {
    struct cw_store *a = open_store(dir);
    int64_t c = put_chat(a, 4, 1);
    expect_saved(a);
    struct cw_store *b = open_store(dir);
    struct cw_store_event *ev = load(b, c);
    ck_assert(!ev->owned);
    ck_assert_uint_eq(ev->n_messages, 4);
    int64_t old_leaf = ev->conversation.leaf;
    struct cw_store_message foreign = ev->messages[3];
    foreign.text = str("overwritten");
    struct cw_store_message branch = {.id = cw_store_new_id(b),
                                      .parent = ev->messages[2].id,
                                      .conversation = c,
                                      .role = CW_STORE_REPLY};
    some_sampling(&branch.sampling);
    ck_assert_int_eq(cw_store_put_message(b, &foreign, NULL), CW_OK);
    ck_assert_int_eq(cw_store_append(b, foreign.id, "x", 1, NULL, 0, NULL, 0, NULL), CW_OK);
    ck_assert_int_eq(cw_store_put_message(b, &branch, NULL), CW_OK);
    ck_assert_int_eq(cw_store_append(b, branch.id, "my own", 6, NULL, 0, NULL, 0, NULL), CW_OK);
    ck_assert_int_eq(cw_store_finish(b, branch.id, 0, NULL, NULL), CW_OK);
    ck_assert_int_eq(cw_store_set_leaf(b, c, branch.id, NULL), CW_OK);
    ck_assert_int_eq(cw_store_delete(b, c, NULL), CW_OK);
    expect_saved(b);
    cw_store_event_free(ev);
    size_t notices = 0;
    while ((ev = cw_store_next(b)) != NULL) {
        notices += ev->kind == CW_STORE_NOTICE;
        cw_store_event_free(ev);
    }
    ck_assert_uint_eq(notices, 3); /* replacing, appending, deleting */
    /* the first goes on meanwhile */
    struct cw_store_message more = {.id = cw_store_new_id(a),
                                    .parent = old_leaf,
                                    .conversation = c,
                                    .text = str("going on"),
                                    .done = true};
    some_sampling(&more.sampling);
    ck_assert_int_eq(cw_store_put_message(a, &more, NULL), CW_OK);
    ck_assert_int_eq(cw_store_set_leaf(a, c, more.id, NULL), CW_OK);
    close_store(a, CW_OK);
    /* the owner is gone: the second owns it now */
    ev = load(b, c);
    ck_assert(ev->owned);
    ck_assert_uint_eq(ev->n_messages, 6);
    ck_assert_int_eq(ev->conversation.leaf, more.id);
    size_t texts = 0;
    for (size_t i = 0; i < 6; i++) {
        ck_assert(!str_is(ev->messages[i].text, "overwritten"));
        texts += str_is(ev->messages[i].text, "my own") || str_is(ev->messages[i].text, "going on");
    }
    ck_assert_uint_eq(texts, 2);
    cw_store_event_free(ev);
    close_store(b, CW_OK);
}
END_TEST

/* More than the queue takes is refused, and the message never has a hole. */
START_TEST(bounded) {
    struct cw_store *s = open_store_with(dir, NULL, 100000);
    char *big = cw_calloc(1, 60000);
    int64_t c = put_chat(s, 1, 1);
    struct cw_store_message m = {
        .id = cw_store_new_id(s), .conversation = c, .role = CW_STORE_REPLY};
    some_sampling(&m.sampling);
    memset(big, 'x', 60000);
    ck_assert_int_eq(cw_store_put_message(s, &m, NULL), CW_OK);
    expect_saved(s);
    ck_assert_int_eq(cw_store_append(s, m.id, "a", 1, NULL, 0, NULL, 0, NULL), CW_OK);
    ck_assert_int_eq(cw_store_append(s, m.id, big, 60000, big, 60000, NULL, 0, NULL), CW_EFULL);
    ck_assert_int_eq(cw_store_append(s, m.id, "b", 1, NULL, 0, NULL, 0, NULL), CW_EFULL);
    ck_assert_int_eq(cw_store_finish(s, m.id, 0, NULL, NULL), CW_EFULL);
    expect_saved(s);
    struct cw_store_event *ev = load(s, c);
    ck_assert(str_is(ev->messages[1].text, "a"));
    cw_store_event_free(ev);
    m.text = str("whole");
    ck_assert_int_eq(cw_store_put_message(s, &m, NULL), CW_OK);
    ck_assert_int_eq(cw_store_append(s, m.id, "!", 1, NULL, 0, NULL, 0, NULL), CW_OK);
    ev = load(s, c);
    ck_assert(str_is(ev->messages[1].text, "whole!"));
    cw_store_event_free(ev);
    close_store(s, CW_OK);
    free(big);
}
END_TEST

START_TEST(titles) {
    static const struct {
        const char *text, *title;
    } cases[] = {
        {"", "Conversation"},
        {" \n\t ", "Conversation"},
        {"Hello", "Hello"},
        {"\n\n# Head\nbody", "Head"},
        {"a  b\tc", "a b c"},
        {"esc \x1b[31m", "esc \\x1B[31m"},
        {"bad \xff byte", "bad \\xFF byte"},
        {"Tell me about the colours of the autumn leaves in northern forests, please",
         "Tell me about the colours of the autumn leaves in northern..."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cw_buf out = {0};
        cw_store_title(cases[i].text, strlen(cases[i].text), &out);
        ck_assert_str_eq(out.data, cases[i].title);
        cw_buf_free(&out);
    }
    char *dots = cw_calloc(1, 301);
    struct cw_buf out = {0};
    memset(dots, 'w', 300);
    cw_store_title(dots, 300, &out);
    ck_assert_uint_eq(out.len, 63);
    cw_buf_free(&out);
    free(dots);
}
END_TEST

START_TEST(names_are_unlike) {
    struct cw_store *s = open_store(dir);
    char a[CW_STORE_NAME], b[CW_STORE_NAME];
    int64_t last = 0;
    int same = 0;
    for (int i = 0; i < 1000; i++) {
        int64_t id = cw_store_new_id(s);
        ck_assert_int_gt(id, last);
        last = id;
        cw_store_name(id, a);
        cw_store_name(id + 1, b);
        ck_assert_uint_eq(strlen(a), CW_STORE_NAME - 1);
        same += strncmp(a, b, 3) == 0;
    }
    ck_assert_int_lt(same, 5);
    close_store(s, CW_OK);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("store");
    TCase *tc = tcase_create("store");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 240);
    tcase_add_test(tc, round_trip);
    tcase_add_test(tc, private_modes);
    tcase_add_test(tc, grows_by_pieces);
    tcase_add_test(tc, put_again);
    tcase_add_test(tc, lists_and_searches);
    tcase_add_test(tc, deletes_without_a_trace);
    tcase_add_test(tc, removal_is_finished_later);
    tcase_add_test(tc, deleted_by_one_that_was_killed);
    tcase_add_test(tc, deletes_a_huge_one);
    tcase_add_test(tc, two_programs);
    tcase_add_test(tc, bounded);
    tcase_add_test(tc, titles);
    tcase_add_test(tc, names_are_unlike);
    suite_add_tcase(suite, tc);
    SRunner *sr = srunner_create(suite);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? 0 : 1;
}
