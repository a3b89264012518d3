/* SPDX-License-Identifier: MIT
 *
 * The file of a snapshot. Numbers lie in it as they do in memory: it is read where it was written.
 *
 *     struct header            what the cells depend on, and hashes of itself and of the table
 *     int32_t ids[n]           n a multiple of 16, the last ids of a timeline may be missing
 *     uint64_t hash[n_pages]   of each page's bytes
 *     zeros                    up to a multiple of 4,096
 *     pages                    cells of 256 ids, the last one of what is left of n
 *
 * Whatever the file says is compared with what this session has, or with the size of the file,
 * before it is used as a length. The hashes find damage, not malice: who may write the file may
 * choose its cells; they are read as numbers and nothing else. */
#include "core/chat/session_impl.h"

#include "core/model/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FORMAT = 1, BLOCK = 16, ALIGN = 4096 };

static const char magic[8] = {'c', 'h', 'i', 'n', 'w', 'a', 'g', '\n'};

struct header {
    char magic[8];
    uint32_t format, byte_order; /* 1 */
    /* What the cells depend on. */
    uint32_t arithmetic, exact;
    uint8_t model[CW_MODEL_KEY];
    uint64_t angles;
    uint32_t kv_type, page_cells, n_layers, n_kv_heads, head_k, head_v;
    /* What is there. */
    uint64_t n_ids, page_bytes;
    uint64_t table; /* hash of ids and page hashes */
    uint64_t self;  /* hash of all above */
};

/* Everything but what is there, of this session. */
static struct header header_of(struct cw_session *s) {
    const struct cw_hparams *hp = &s->model->hp;
    if (!s->has_key) {
        cw_model_key(s->model, s->key);
        s->has_key = true;
    }
    struct header h = {
        .format = FORMAT,
        .byte_order = 1,
        .arithmetic = CW_ARITHMETIC,
        .exact = s->model->info.exact,
        .angles = cw_scratch_angles(s->model, s->scratch),
        .kv_type = s->kv_type,
        .page_cells = CW_PAGE_CELLS,
        .n_layers = (uint32_t)hp->n_layers,
        .n_kv_heads = (uint32_t)hp->n_kv_heads,
        .head_k = (uint32_t)hp->head_k,
        .head_v = (uint32_t)hp->head_v,
        .page_bytes = (uint64_t)hp->n_layers * cw_kv_packed_bytes(s->kv.layers, CW_PAGE_CELLS),
    };
    memcpy(h.magic, magic, sizeof magic);
    memcpy(h.model, s->key, sizeof h.model);
    return h;
}

static size_t pages_of(uint64_t n_ids) {
    return (size_t)((n_ids + CW_PAGE_CELLS - 1) / CW_PAGE_CELLS);
}

static uint64_t table_bytes(uint64_t n_ids) {
    return n_ids * sizeof(int32_t) + pages_of(n_ids) * sizeof(uint64_t);
}

/* Where the pages begin. */
static uint64_t pages_at(uint64_t n_ids) {
    uint64_t end = sizeof(struct header) + table_bytes(n_ids);
    return (end + ALIGN - 1) / ALIGN * ALIGN;
}

/* Of page i. */
static uint32_t cells_of(uint64_t n_ids, size_t i) {
    uint64_t left = n_ids - (uint64_t)i * CW_PAGE_CELLS;
    return left < CW_PAGE_CELLS ? (uint32_t)left : CW_PAGE_CELLS;
}

static size_t bytes_of(const struct cw_session *s, uint32_t cells) {
    return (size_t)s->kv.n_layers * cw_kv_packed_bytes(s->kv.layers, cells);
}

static uint64_t file_bytes(const struct cw_session *s, uint64_t n_ids) {
    uint64_t whole = n_ids / CW_PAGE_CELLS, rest = n_ids % CW_PAGE_CELLS;
    return pages_at(n_ids) + whole * bytes_of(s, CW_PAGE_CELLS) + bytes_of(s, (uint32_t)rest);
}

uint64_t cw_session_snapshot_bytes(const struct cw_session *s) {
    size_t n = s->now.n / BLOCK * BLOCK;
    return n > 0 ? file_bytes(s, n) : 0;
}

/* ---- writing -----------------------------------------------------------------------------------
 */

static bool write_all(int fd, const void *data, size_t n) {
    for (const char *p = data; n > 0;) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return false;
        }
        p += done;
        n -= (size_t)done;
    }
    return true;
}

/* Where page i of the timeline lies if the file has it as memory does, else NULL. */
static uint8_t *in_place(const struct cw_session *s, size_t i, uint32_t cells) {
    const struct cw_kv_layer *l = s->kv.layers;
    size_t layer = cw_kv_packed_bytes(l, cells);
    bool dense = s->kv.n_layers == 1 || (char *)l[1].base - (char *)l[0].base == (ptrdiff_t)layer;
    return cells == CW_PAGE_CELLS && dense
               ? (uint8_t *)s->kv.base + (size_t)s->now.pages[i] * s->kv.page_bytes
               : NULL;
}

/* The cells of page i in one piece, in buf if they do not lie so. */
static const uint8_t *page_data(const struct cw_session *s, size_t i, uint32_t cells,
                                uint8_t *buf) {
    const uint8_t *data = in_place(s, i, cells);
    if (data != NULL) {
        return data;
    }
    data = buf;
    for (int l = 0; l < s->kv.n_layers; l++) {
        cw_kv_pack(&s->kv.layers[l], s->now.pages[i], cells, buf);
        buf += cw_kv_packed_bytes(&s->kv.layers[l], cells);
    }
    return data;
}

/* Pages first, which gives their hashes, then what stands before them. */
static bool write_file(int fd, struct cw_session *s, size_t n_ids, uint8_t *buf, uint8_t *table) {
    struct header h = header_of(s);
    size_t n_pages = pages_of(n_ids);
    uint64_t at = pages_at(n_ids);
    memcpy(table, s->now.ids, n_ids * sizeof *s->now.ids);
    if (lseek(fd, (off_t)at, SEEK_SET) < 0) {
        return false;
    }
    for (size_t i = 0; i < n_pages; i++) {
        uint32_t cells = cells_of(n_ids, i);
        size_t bytes = bytes_of(s, cells);
        const uint8_t *data = page_data(s, i, cells, buf);
        uint64_t hash = cw_hash(data, bytes, i);
        memcpy(table + n_ids * sizeof(int32_t) + i * sizeof hash, &hash, sizeof hash);
        if (!write_all(fd, data, bytes)) {
            return false;
        }
    }
    h.n_ids = n_ids;
    h.table = cw_hash(table, (size_t)table_bytes(n_ids), 0);
    h.self = cw_hash(&h, offsetof(struct header, self), 0);
    return lseek(fd, 0, SEEK_SET) == 0 && write_all(fd, &h, sizeof h) &&
           write_all(fd, table, (size_t)table_bytes(n_ids));
}

int cw_session_save(struct cw_session *s, const char *path, struct cw_err *err) {
    size_t n_ids = s->now.n / BLOCK * BLOCK;
    struct cw_buf name = {0};
    if (n_ids == 0) {
        return cw_fail(err, CW_EINVAL, "%s: fewer than %d tokens are not worth a snapshot", path,
                       BLOCK);
    }
    size_t page = bytes_of(s, CW_PAGE_CELLS), table = (size_t)table_bytes(n_ids);
    uint8_t *buf = cw_large_alloc(page + table);
    if (buf == NULL) {
        return cw_fail(err, CW_ENOMEM, "%s: no memory to write it", path);
    }
    cw_buf_printf(&name, "%s.%ld.tmp", path, (long)getpid());
    unlink(name.data); /* of an earlier process with this number */
    int fd = open(name.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool ok = fd >= 0 && write_file(fd, s, n_ids, buf, buf + page);
    int why = errno;
    if (fd >= 0 && close(fd) != 0 && ok) {
        ok = false;
        why = errno;
    }
    if (ok && rename(name.data, path) != 0) {
        ok = false;
        why = errno;
    }
    if (fd >= 0 && !ok) {
        unlink(name.data);
    }
    cw_buf_free(&name);
    cw_large_free(buf, page + table);
    return ok ? CW_OK : cw_fail(err, CW_EIO, "%s: %s", path, strerror(why));
}

/* ---- reading -----------------------------------------------------------------------------------
 */

struct file {
    const char *path;
    int fd;
    struct header h;
    int32_t *ids;   /* [h.n_ids] */
    uint8_t *table; /* what they lie in */
};

static bool read_at(int fd, void *data, size_t n, uint64_t at) {
    for (char *p = data; n > 0;) {
        ssize_t done = pread(fd, p, n, (off_t)at);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return false;
        }
        p += done;
        n -= (size_t)done;
        at += (uint64_t)done;
    }
    return true;
}

static int open_file(struct file *f, uint64_t *size, struct cw_err *err) {
    struct stat st;
    f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (f->fd < 0) {
        return cw_fail(err, errno == ENOENT ? CW_ENOENT : CW_EIO, "%s: %s", f->path,
                       strerror(errno));
    }
    if (fstat(f->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return cw_fail(err, CW_EIO, "%s: not a regular file", f->path);
    }
    *size = (uint64_t)st.st_size;
    return CW_OK;
}

/* What the snapshot's cells depend on is what this session has. */
static int check_header(struct cw_session *s, const struct file *f, uint64_t size,
                        struct cw_err *err) {
    const struct header *h = &f->h, ours = header_of(s);
    const char *what = NULL;
    if (memcmp(h->magic, magic, sizeof magic) != 0 || h->byte_order != 1) {
        return cw_fail(err, CW_EFORMAT, "%s: not a snapshot", f->path);
    }
    if (h->format != FORMAT) {
        return cw_fail(err, CW_EFORMAT, "%s: a snapshot of another version", f->path);
    }
    if (h->self != cw_hash(h, offsetof(struct header, self), 0)) {
        return cw_fail(err, CW_EFORMAT, "%s: a damaged snapshot", f->path);
    }
    if (memcmp(h->model, ours.model, sizeof h->model) != 0) {
        what = "model";
    } else if (h->arithmetic != ours.arithmetic || h->exact != ours.exact) {
        what = "arithmetic";
    } else if (h->kv_type != ours.kv_type) {
        what = "cache type";
    } else if (h->angles != ours.angles) {
        what = "rotation of positions";
    } else if (h->page_cells != ours.page_cells || h->n_layers != ours.n_layers ||
               h->n_kv_heads != ours.n_kv_heads || h->head_k != ours.head_k ||
               h->head_v != ours.head_v || h->page_bytes != ours.page_bytes) {
        what = "shape of the cache";
    }
    if (what != NULL) {
        return cw_fail(err, CW_EFORMAT, "%s: a snapshot of another %s", f->path, what);
    }
    if (h->n_ids == 0 || h->n_ids % BLOCK != 0 || h->n_ids > CW_MAX_N_CTX ||
        size != file_bytes(s, h->n_ids)) {
        return cw_fail(err, CW_EFORMAT, "%s: a snapshot that was cut short", f->path);
    }
    return CW_OK;
}

static int read_table(struct cw_session *s, struct file *f, struct cw_err *err) {
    size_t bytes = (size_t)table_bytes(f->h.n_ids); /* less than the file has */
    f->table = cw_large_alloc(bytes);
    if (f->table == NULL) {
        return cw_fail(err, CW_ENOMEM, "%s: no memory to read it", f->path);
    }
    bool ok =
        read_at(f->fd, f->table, bytes, sizeof f->h) && cw_hash(f->table, bytes, 0) == f->h.table;
    f->ids = (int32_t *)(void *)f->table;
    for (uint64_t i = 0; ok && i < f->h.n_ids; i++) {
        ok = f->ids[i] >= 0 && f->ids[i] < s->model->hp.n_vocab;
    }
    return ok ? CW_OK : cw_fail(err, CW_EFORMAT, "%s: a damaged snapshot", f->path);
}

/* Cells of page i, those of the file, into a page of the timeline. */
static bool read_page(struct cw_session *s, const struct file *f, size_t i, uint8_t *buf) {
    uint32_t cells = cells_of(f->h.n_ids, i);
    size_t bytes = bytes_of(s, cells);
    uint8_t *direct = in_place(s, i, cells), *to = direct != NULL ? direct : buf;
    uint64_t hash;
    memcpy(&hash, f->table + f->h.n_ids * sizeof(int32_t) + i * sizeof hash, sizeof hash);
    if (!read_at(f->fd, to, bytes, pages_at(f->h.n_ids) + (uint64_t)i * f->h.page_bytes) ||
        cw_hash(to, bytes, i) != hash) {
        return false;
    }
    for (int l = 0; direct == NULL && l < s->kv.n_layers; l++) {
        cw_kv_unpack(&s->kv.layers[l], s->now.pages[i], cells, buf);
        buf += cw_kv_packed_bytes(&s->kv.layers[l], cells);
    }
    return true;
}

/* Make the timeline ids[0..n) of the file: whole pages that are here already stay. */
static int read_cells(struct cw_session *s, const struct file *f, size_t n, size_t *restored,
                      struct cw_err *err) {
    size_t page = bytes_of(s, CW_PAGE_CELLS);
    uint8_t *buf = cw_large_alloc(page);
    if (buf == NULL) {
        return cw_fail(err, CW_ENOMEM, "%s: no memory to read it", f->path);
    }
    size_t same = cw_session_move(s, f->ids, n);
    int rc = CW_OK;
    s->n_rows = 0;
    cw_timeline_truncate(&s->now, &s->kv, same / CW_PAGE_CELLS * CW_PAGE_CELLS);
    while (rc == CW_OK && s->now.n < n) {
        size_t i = s->now.n / CW_PAGE_CELLS, left = n - s->now.n;
        size_t take = left < CW_PAGE_CELLS ? left : CW_PAGE_CELLS;
        if (!cw_session_reserve(s, &s->now, CW_PAGE_CELLS)) {
            rc = cw_fail(err, CW_ENOMEM, "%s: no page of the cache is left", f->path);
        } else if (!read_page(s, f, i, buf)) {
            rc = cw_fail(err, CW_EFORMAT, "%s: a damaged snapshot", f->path);
        } else {
            cw_timeline_append(&s->now, &s->kv, f->ids + s->now.n, take);
            *restored += take;
        }
    }
    cw_timeline_truncate(&s->now, &s->kv, s->now.n); /* what was reserved in vain */
    cw_large_free(buf, page);
    cw_session_settle(s);
    return rc;
}

static int load(struct cw_session *s, struct file *f, const int32_t *want, size_t n,
                size_t *restored, struct cw_err *err) {
    uint64_t size = 0;
    int rc = open_file(f, &size, err);
    if (rc == CW_OK && !read_at(f->fd, &f->h, sizeof f->h, 0)) {
        rc = cw_fail(err, CW_EFORMAT, "%s: not a snapshot", f->path);
    }
    if (rc == CW_OK) {
        rc = check_header(s, f, size, err);
    }
    if (rc == CW_OK) {
        rc = read_table(s, f, err);
    }
    if (rc != CW_OK) {
        return rc;
    }
    size_t useful = 0, most = f->h.n_ids < s->n_ctx ? (size_t)f->h.n_ids : s->n_ctx;
    while (useful < most && (want == NULL || (useful < n && f->ids[useful] == want[useful]))) {
        useful++;
    }
    if (cw_session_cached(s, f->ids, useful) == useful) {
        if (want == NULL) {
            cw_session_move(s, f->ids, useful);
        }
        return CW_OK;
    }
    posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return read_cells(s, f, useful, restored, err);
}

int cw_session_load(struct cw_session *s, const char *path, const int32_t *want, size_t n,
                    size_t *restored, struct cw_err *err) {
    struct file f = {.path = path, .fd = -1};
    size_t count = 0;
    cw_session_adopt(s, -1);
    int rc = load(s, &f, want, n, &count, err);
    if (f.fd >= 0) {
        close(f.fd);
    }
    if (f.table != NULL) {
        cw_large_free(f.table, (size_t)table_bytes(f.h.n_ids));
    }
    if (restored != NULL) {
        *restored = count;
    }
    return rc;
}
