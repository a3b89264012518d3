/* SPDX-License-Identifier: MIT
 *
 * The store where things go wrong around it: the program is killed, the disk is full, slow or
 * read-only, the file is another program's, an older or a newer version's.
 *
 * CHINWAG_KILLS sets how often the program is killed (10 in the suite, see campaign.sh for more).
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "chinwag/clock.h"
#include "tests/store/support.h"

static char *dir;

static void setup(void) {
    dir = make_dir();
}

static void teardown(void) {
    drop_dir(dir);
}

/* ---- a file layer that can be told to fail --------------------------------------------------- */

static struct {
    atomic_int fail_write; /* SQLite's code for every write, 0: none */
    atomic_int sync_s;     /* seconds that every sync takes */
    atomic_int n_syncs;
    atomic_long io_thread; /* that reads, writes or syncs */
    atomic_int wrong_thread;
    long main_thread;
    sqlite3_vfs *real;
    sqlite3_vfs vfs;
} layer;

struct layer_file {
    sqlite3_file base;
    sqlite3_file *real;
};

static void note_thread(void) {
    if ((long)pthread_self() == layer.main_thread) {
        layer.wrong_thread = 1;
    }
}

#define REAL(f) (((struct layer_file *)(f))->real)

static int l_close(sqlite3_file *f) {
    int rc = REAL(f)->pMethods->xClose(REAL(f));
    free(REAL(f));
    return rc;
}
static int l_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at) {
    note_thread();
    return REAL(f)->pMethods->xRead(REAL(f), p, n, at);
}
static int l_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at) {
    note_thread();
    return layer.fail_write ? layer.fail_write : REAL(f)->pMethods->xWrite(REAL(f), p, n, at);
}
static int l_truncate(sqlite3_file *f, sqlite3_int64 n) {
    return REAL(f)->pMethods->xTruncate(REAL(f), n);
}
static int l_sync(sqlite3_file *f, int flags) {
    note_thread();
    layer.n_syncs++;
    if (layer.sync_s > 0) {
        const struct timespec t = {layer.sync_s, 0};
        nanosleep(&t, NULL);
    }
    return REAL(f)->pMethods->xSync(REAL(f), flags);
}
static int l_size(sqlite3_file *f, sqlite3_int64 *n) {
    return REAL(f)->pMethods->xFileSize(REAL(f), n);
}
static int l_lock(sqlite3_file *f, int kind) {
    return REAL(f)->pMethods->xLock(REAL(f), kind);
}
static int l_unlock(sqlite3_file *f, int kind) {
    return REAL(f)->pMethods->xUnlock(REAL(f), kind);
}
static int l_reserved(sqlite3_file *f, int *out) {
    return REAL(f)->pMethods->xCheckReservedLock(REAL(f), out);
}
static int l_control(sqlite3_file *f, int op, void *arg) {
    return REAL(f)->pMethods->xFileControl(REAL(f), op, arg);
}
static int l_sector(sqlite3_file *f) {
    return REAL(f)->pMethods->xSectorSize(REAL(f));
}
static int l_device(sqlite3_file *f) {
    return REAL(f)->pMethods->xDeviceCharacteristics(REAL(f));
}
static int l_map(sqlite3_file *f, int page, int size, int extend, void volatile **out) {
    return REAL(f)->pMethods->xShmMap(REAL(f), page, size, extend, out);
}
static int l_shmlock(sqlite3_file *f, int at, int n, int flags) {
    return REAL(f)->pMethods->xShmLock(REAL(f), at, n, flags);
}
static void l_barrier(sqlite3_file *f) {
    REAL(f)->pMethods->xShmBarrier(REAL(f));
}
static int l_unmap(sqlite3_file *f, int del) {
    return REAL(f)->pMethods->xShmUnmap(REAL(f), del);
}

static int l_open(sqlite3_vfs *v, const char *name, sqlite3_file *f, int flags, int *out) {
    static const sqlite3_io_methods methods = {2,         l_close,  l_read,   l_write,  l_truncate,
                                               l_sync,    l_size,   l_lock,   l_unlock, l_reserved,
                                               l_control, l_sector, l_device, l_map,    l_shmlock,
                                               l_barrier, l_unmap,  NULL,     NULL};
    struct layer_file *file = (struct layer_file *)f;
    file->real = cw_calloc(1, (size_t)layer.real->szOsFile);
    int rc = layer.real->xOpen(layer.real, name, file->real, flags, out);
    f->pMethods = rc == SQLITE_OK ? &methods : NULL;
    if (rc != SQLITE_OK) {
        free(file->real);
    }
    return rc;
}

static void use_layer(void) {
    layer.main_thread = (long)pthread_self();
    layer.real = sqlite3_vfs_find(NULL);
    layer.vfs = *layer.real;
    layer.vfs.zName = "layer";
    layer.vfs.szOsFile = sizeof(struct layer_file);
    layer.vfs.xOpen = l_open;
    ck_assert_int_eq(sqlite3_vfs_register(&layer.vfs, 0), SQLITE_OK);
}

/* ---- killed --------------------------------------------------------------------------------- */

/* Seen by the parent: what the child was told is saved. */
struct witness {
    atomic_long chats, pieces; /* conversations put; pieces of the growing reply, saved */
    atomic_llong message, conversation;
};

static void piece_text(int k, char out[32]) {
    snprintf(out, 32, "<%d> ", k);
}

/* Put conversations and let a reply grow until the end comes. */
static void write_for_ever(struct witness *w, unsigned seed) {
    const struct cw_store_options opt = {.dir = dir};
    struct cw_store *s;
    if (cw_store_create(&s, &opt, NULL) != CW_OK) {
        _exit(1);
    }
    for (unsigned n = 0;; n++) {
        int64_t c = put_chat(s, 3, seed + n);
        struct cw_store_message m = {
            .id = cw_store_new_id(s), .conversation = c, .role = CW_STORE_REPLY};
        some_sampling(&m.sampling);
        cw_store_put_message(s, &m, NULL);
        if (cw_store_wait_saved(s, NULL) != CW_OK) {
            _exit(2);
        }
        w->pieces = 0;
        w->message = m.id;
        w->conversation = c;
        w->chats = n + 1;
        for (int k = 0; k < 40; k++) {
            char piece[32];
            uint64_t serial = 0;
            struct cw_store_token *t = make_tokens(1, (unsigned)k);
            piece_text(k, piece);
            cw_store_append(s, m.id, piece, strlen(piece), NULL, 0, t, 1, &serial);
            free(t);
            if (k % 8 == 7) {
                if (cw_store_wait_saved(s, NULL) != CW_OK) {
                    _exit(2);
                }
                w->pieces = k + 1;
            }
        }
        cw_store_finish(s, m.id, 0, NULL, NULL);
        if (cw_store_wait_saved(s, NULL) != CW_OK) {
            _exit(2);
        }
    }
}

START_TEST(killed) {
    const char *given = getenv("CHINWAG_KILLS");
    int kills = given ? atoi(given) : 10;
    long total = 0;
    uint32_t state = 5;
    struct witness *w =
        mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < kills; i++) {
        memset((void *)w, 0, sizeof *w);
        pid_t child = fork();
        if (child == 0) {
            write_for_ever(w, (unsigned)i * 1000);
        }
        /* at a moment of the child's progress, not of the clock, plus a little noise */
        state = state * 1664525u + 1013904223u;
        long chats = 1 + (long)(state >> 28) % 3;
        while (w->chats < chats) {
            ck_assert_msg(waitpid(child, NULL, WNOHANG) == 0, "the child ended");
            usleep(1000);
        }
        usleep(state % 300000);
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        waitpid(child, NULL, 0);
        total += w->chats;

        struct cw_store *s = open_store(dir);
        struct cw_store_event *ev = list(s, "");
        ck_assert_int_ge((long)ev->n_hits, total);
        total = (long)ev->n_hits; /* one more may have been on its way */
        cw_store_event_free(ev);
        ev = load(s, w->conversation);
        const struct cw_store_message *m = &ev->messages[ev->n_messages - 1];
        ck_assert_int_eq(m->id, w->message);
        ck_assert(m->done); /* what was left unfinished was finished */
        ck_assert_int_ge((long)m->n_tokens, w->pieces);
        struct cw_buf want = {0};
        for (int k = 0; k < (int)m->n_tokens; k++) {
            char piece[32];
            piece_text(k, piece);
            cw_buf_puts(&want, piece);
        }
        ck_assert(cw_str_eq(m->text, want.data ? want.data : ""));
        cw_buf_free(&want);
        cw_store_event_free(ev);
        close_store(s, CW_OK);
        ck_assert_uint_eq(count_files(dir, "conversations.db.damaged"), 0);
    }
    munmap(w, sizeof *w);
}
END_TEST

/* ---- full, slow, read-only ------------------------------------------------------------------- */

static size_t count_events(struct cw_store *s, enum cw_store_event_kind kind) {
    size_t n = 0;
    for (struct cw_store_event *ev; (ev = cw_store_next(s)) != NULL;) {
        n += ev->kind == kind;
        cw_store_event_free(ev);
    }
    return n;
}

/* Writes fail for a while: told once, kept, and saved when they work again. */
START_TEST(disk_full) {
    use_layer();
    struct cw_store *s = open_store_with(dir, "layer", 0);
    int64_t before = put_chat(s, 4, 1);
    expect_saved(s);
    layer.fail_write = _i == 0 ? SQLITE_FULL : _i == 1 ? SQLITE_IOERR_WRITE : SQLITE_READONLY;
    int64_t during = put_chat(s, 4, 2);
    struct cw_store_event *ev = await_event(s, CW_STORE_TROUBLE);
    ck_assert_uint_gt(strlen(ev->text), 10);
    cw_store_event_free(ev);
    ck_assert_int_ne(cw_store_wait_saved(s, NULL), CW_OK);
    put_chat(s, 2, 3); /* tried again, and not told again */
    ev = load(s, before);
    ck_assert_uint_eq(ev->n_messages, 4); /* reading goes on */
    cw_store_event_free(ev);
    usleep(1500000);
    ck_assert_uint_eq(count_events(s, CW_STORE_TROUBLE), 0);
    layer.fail_write = 0;
    cw_store_event_free(await_event(s, CW_STORE_SAVED));
    expect_saved(s);
    close_store(s, CW_OK);
    s = open_store(dir);
    ev = load(s, during);
    ck_assert_uint_eq(ev->n_messages, 4);
    cw_store_event_free(ev);
    close_store(s, CW_OK);
    ck_assert_uint_eq(count_files(dir, "conversations.db.damaged"), 0);
}
END_TEST

START_TEST(full_to_the_end) {
    use_layer();
    struct cw_store *s = open_store_with(dir, "layer", 0);
    int64_t before = put_chat(s, 4, 1);
    expect_saved(s);
    layer.fail_write = SQLITE_FULL;
    put_chat(s, 4, 2);
    close_store(s, CW_EIO); /* says that something is lost */
    layer.fail_write = 0;
    s = open_store(dir);
    struct cw_store_event *ev = load(s, before);
    ck_assert_uint_eq(ev->n_messages, 4);
    cw_store_event_free(ev);
    close_store(s, CW_OK);
}
END_TEST

/* A limit on the size of files, as a shell sets it: no signal, no loss. */
START_TEST(size_limit) {
    struct cw_store *s = open_store(dir);
    int64_t before = put_chat(s, 4, 1);
    expect_saved(s);
    const struct rlimit small = {200000, RLIM_INFINITY}, large = {RLIM_INFINITY, RLIM_INFINITY};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    int64_t ids[40];
    int n = 0;
    struct cw_err err = {0};
    for (int ok = CW_OK; ok == CW_OK && n < 40; n++) {
        ids[n] = put_chat(s, 20, (unsigned)n + 5);
        ok = cw_store_wait_saved(s, &err);
    }
    ck_assert_int_lt(n, 40);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &large), 0);
    cw_store_event_free(await_event(s, CW_STORE_TROUBLE));
    cw_store_event_free(await_event(s, CW_STORE_SAVED));
    expect_saved(s);
    for (int i = 0; i < n; i++) {
        struct cw_store_event *ev = load(s, ids[i]);
        ck_assert_uint_eq(ev->n_messages, 20);
        cw_store_event_free(ev);
    }
    struct cw_store_event *ev = load(s, before);
    ck_assert_uint_eq(ev->n_messages, 4);
    cw_store_event_free(ev);
    close_store(s, CW_OK);
}
END_TEST

/* A real small file system, filled up in the midst of a chat; only where one may be mounted. */
START_TEST(small_file_system) {
    if (mount("tmpfs", dir, "tmpfs", 0, "size=4m,mode=0700") != 0) {
        printf("skipped: no file system can be mounted here: %s\n", strerror(errno));
        return;
    }
    char *filler = path_in(dir, "filler");
    struct cw_store *s = open_store(dir);
    struct cw_err err = {0};
    int64_t ids[400];
    int n = 0, saved = 0;
    for (int ok = CW_OK; ok == CW_OK && n < 400; n++) {
        ids[n] = put_chat(s, 20, (unsigned)n);
        ok = cw_store_wait_saved(s, &err);
        saved += ok == CW_OK;
        if (n == 3) { /* most of the room */
            int fd = open(filler, O_CREAT | O_WRONLY, 0600);
            ck_assert_int_eq(posix_fallocate(fd, 0, 2 << 20), 0);
            close(fd);
        }
    }
    int read_back = 0;
    for (int i = 0; i < saved; i++) {
        struct cw_store_event *ev = load(s, ids[i]);
        read_back += ev->n_messages == 20;
        cw_store_event_free(ev);
    }
    unlink(filler);
    cw_store_event_free(await_event(s, CW_STORE_TROUBLE));
    cw_store_event_free(await_event(s, CW_STORE_SAVED));
    int code = cw_store_wait_saved(s, &err);
    struct cw_store_event *last = load(s, ids[n - 1]);
    size_t n_last = last->n_messages;
    cw_store_event_free(last);
    int end = cw_store_destroy(s, NULL);
    umount(dir);
    free(filler);
    ck_assert_int_lt(n, 400);
    ck_assert_int_gt(saved, 3);
    ck_assert_int_eq(read_back, saved);
    ck_assert_int_eq(code, CW_OK);
    ck_assert_int_eq(end, CW_OK);
    ck_assert_uint_eq(n_last, 20);
}
END_TEST

/* A disk that takes two seconds for every sync: no call waits for it, and none runs on this
 * thread. */
START_TEST(slow_disk) {
    use_layer();
    struct cw_store *s = open_store_with(dir, "layer", 0);
    int64_t c = put_chat(s, 2, 1);
    expect_saved(s);
    layer.sync_s = 2;
    struct cw_store_message m = {
        .id = cw_store_new_id(s), .conversation = c, .role = CW_STORE_REPLY};
    some_sampling(&m.sampling);
    double longest = 0;
    int syncs = layer.n_syncs;
    cw_store_put_message(s, &m, NULL);
    for (int i = 0; i < 3000; i++) {
        struct cw_store_token *t = make_tokens(1, (unsigned)i);
        double before = cw_now();
        ck_assert_int_eq(cw_store_append(s, m.id, "word ", 5, NULL, 0, t, 1, NULL), CW_OK);
        if (i % 500 == 0) {
            cw_store_set_leaf(s, c, m.id, NULL);
            cw_store_list(s, "", 10, (uint64_t)i + 1);
        }
        cw_store_event_free(cw_store_next(s));
        double took = cw_now() - before;
        longest = took > longest ? took : longest;
        free(t);
        usleep(1000);
    }
    ck_assert_msg(longest < 1.0, "a call took %.3f s", longest); /* a sync would take two */
    expect_saved(s);
    ck_assert_int_gt(layer.n_syncs, syncs);
    ck_assert_int_eq(layer.wrong_thread, 0);
    layer.sync_s = 0;
    struct cw_store_event *ev = load(s, c);
    ck_assert_uint_eq(ev->messages[2].n_tokens, 3000);
    cw_store_event_free(ev);
    close_store(s, CW_OK);
}
END_TEST

START_TEST(nowhere_to_write) {
    /* something else stands where the folder should be */
    char *path = path_in(dir, "file");
    write_file(path, "x", 1);
    char *below = path_in(path, "chinwag");
    struct cw_store *s = open_store(below);
    struct cw_store_event *ev = await_event(s, CW_STORE_TROUBLE);
    ck_assert_ptr_nonnull(strstr(ev->text, "Not a directory"));
    cw_store_event_free(ev);
    put_chat(s, 3, 1);
    cw_store_list(s, "", 10, 77);
    ev = cw_store_wait(s, 77);
    ck_assert_int_eq(ev->kind, CW_STORE_FAILED);
    cw_store_event_free(ev);
    ck_assert_uint_eq(count_events(s, CW_STORE_TROUBLE), 0);
    /* until it can be made */
    unlink(path);
    cw_store_event_free(await_event(s, CW_STORE_SAVED));
    ev = list(s, "");
    ck_assert_uint_eq(ev->n_hits, 1);
    cw_store_event_free(ev);
    close_store(s, CW_OK);
    char command[8192];
    snprintf(command, sizeof command, "rm -r '%s'", path);
    ck_assert_int_eq(system(command), 0);
    free(path);
    free(below);
}
END_TEST

/* A read-only switch: what is there can be read, nothing is written, said once. */
START_TEST(read_only) {
    struct cw_store *s = open_store(dir);
    int64_t c = put_chat(s, 3, 1);
    close_store(s, CW_OK);
    if (mount(dir, dir, NULL, MS_BIND, NULL) != 0 ||
        mount(NULL, dir, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) != 0) {
        umount(dir);
        printf("skipped: nothing can be mounted here: %s\n", strerror(errno));
        return;
    }
    struct cw_err err = {0};
    s = open_store(dir);
    cw_store_load(s, c, 1);
    struct cw_store_event *ev = cw_store_wait(s, 1);
    int kind = ev->kind;
    size_t n = ev->n_messages;
    cw_store_event_free(ev);
    put_chat(s, 2, 9);
    int code = cw_store_wait_saved(s, &err);
    size_t told = count_events(s, CW_STORE_TROUBLE);
    mount(NULL, dir, NULL, MS_REMOUNT | MS_BIND, NULL); /* writable again */
    ev = await_event(s, CW_STORE_SAVED);
    cw_store_event_free(ev);
    int end = cw_store_destroy(s, NULL);
    umount(dir);
    ck_assert_int_eq(kind, CW_STORE_LOADED);
    ck_assert_uint_eq(n, 3);
    ck_assert_int_ne(code, CW_OK);
    ck_assert_uint_eq(told, 1);
    ck_assert_int_eq(end, CW_OK);
}
END_TEST

/* ---- other files ----------------------------------------------------------------------------- */

static void run_sql(const char *sql) {
    char *path = path_in(dir, "conversations.db");
    sqlite3 *db = NULL;
    char *why = NULL;
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &why) == SQLITE_OK, "%s", why);
    sqlite3_close(db);
    free(path);
}

static void expect_left_alone(const char *what) {
    size_t n, k;
    char *path = path_in(dir, "conversations.db");
    char *before = read_file(path, &n);
    struct cw_store *s = open_store(dir);
    struct cw_store_event *ev = await_event(s, CW_STORE_TROUBLE);
    ck_assert_msg(strstr(ev->text, what) != NULL, "%s", ev->text);
    cw_store_event_free(ev);
    put_chat(s, 2, 1);
    close_store(s, CW_EIO);
    char *after = read_file(path, &k);
    ck_assert(n == k && memcmp(before, after, n) == 0);
    free(before);
    free(after);
    free(path);
}

START_TEST(foreign_file) {
    run_sql("CREATE TABLE t(x); INSERT INTO t VALUES(1);");
    expect_left_alone("was not made by chinwag");
}
END_TEST

START_TEST(newer_version) {
    struct cw_store *s = open_store(dir);
    put_chat(s, 2, 1);
    close_store(s, CW_OK);
    run_sql("PRAGMA user_version=99");
    expect_left_alone("newer version");
}
END_TEST

/* What a hand-made file may bring along is never run; the messages come over. */
START_TEST(hostile_schema) {
    struct cw_store *s = open_store(dir);
    int64_t c = put_chat(s, 4, 1);
    close_store(s, CW_OK);
    run_sql("CREATE TRIGGER evil AFTER INSERT ON messages BEGIN DELETE FROM conversations; END;"
            "CREATE VIEW w AS SELECT load_extension('x');");
    s = open_store(dir);
    struct cw_store_event *ev = load(s, c);
    ck_assert_uint_eq(ev->n_messages, 4);
    cw_store_event_free(ev);
    ev = await_event(s, CW_STORE_MENDED);
    ck_assert_uint_eq(ev->n_recovered, 4);
    ck_assert_uint_eq(ev->n_lost, 0);
    cw_store_event_free(ev);
    put_chat(s, 2, 2);
    ev = list(s, "");
    ck_assert_uint_eq(ev->n_hits, 2);
    cw_store_event_free(ev);
    close_store(s, CW_OK);
}
END_TEST

/* Text changed by hand: its sum is wrong, so it is not shown. */
START_TEST(changed_text) {
    struct cw_store *s = open_store(dir);
    int64_t c = put_chat(s, 10, 1);
    close_store(s, CW_OK);
    run_sql("UPDATE messages SET text='forged' WHERE id=(SELECT max(id) FROM messages)");
    s = open_store(dir);
    struct cw_store_event *ev = load(s, c);
    ck_assert_uint_eq(ev->n_messages, 9);
    for (size_t i = 0; i < 9; i++) {
        ck_assert(!str_is(ev->messages[i].text, "forged"));
    }
    cw_store_event_free(ev);
    ev = await_event(s, CW_STORE_MENDED);
    ck_assert_uint_eq(ev->n_lost, 1);
    cw_store_event_free(ev);
    close_store(s, CW_OK);
}
END_TEST

/* A store of the first version, which had no text index. */
START_TEST(first_version) {
    struct cw_store *s = open_store(dir);
    int64_t c = put_chat(s, 4, 7);
    close_store(s, CW_OK);
    run_sql("DROP TABLE search; PRAGMA user_version=1;");
    /* the sum of the row that holds the version: as that version wrote it */
    run_sql("UPDATE meta SET value='chinwag 1', sum=-1584207066888154");
    s = open_store(dir);
    struct cw_store_event *ev = list(s, "chat7");
    ck_assert_uint_eq(ev->n_hits, 1);
    ck_assert_int_eq(ev->hits[0].conversation.id, c);
    cw_store_event_free(ev);
    ck_assert_uint_eq(count_events(s, CW_STORE_MENDED), 0);
    close_store(s, CW_OK);
}
END_TEST

int main(void) {
    Suite *suite = suite_create("store-faults");
    TCase *tc = tcase_create("faults");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 1200);
    tcase_add_test(tc, killed);
    tcase_add_loop_test(tc, disk_full, 0, 3);
    tcase_add_test(tc, full_to_the_end);
    tcase_add_test(tc, size_limit);
    tcase_add_test(tc, small_file_system);
    tcase_add_test(tc, slow_disk);
    tcase_add_test(tc, nowhere_to_write);
    tcase_add_test(tc, read_only);
    tcase_add_test(tc, foreign_file);
    tcase_add_test(tc, newer_version);
    tcase_add_test(tc, hostile_schema);
    tcase_add_test(tc, changed_text);
    tcase_add_test(tc, first_version);
    suite_add_tcase(suite, tc);
    SRunner *sr = srunner_create(suite);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? 0 : 1;
}
