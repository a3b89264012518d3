/* SPDX-License-Identifier: MIT
 *
 * Rows out of a damaged file, without SQLite: a reader of table b-tree leaves, after SQLite's
 * published file format (sqlite.org/fileformat2.html). Neither the tree above the leaves nor the
 * schema is needed. A cell is taken for a row when its record has the columns of one of our tables
 * and the row's checksum is right, so that nothing has to be believed: where a page's header or its
 * list of cells is broken, every offset in it is tried.
 *
 * Pages of the write-ahead log go before those of the file, up to the log's last commit. A frame
 * whose own checksum is wrong stands for no page, but whole rows in it count, and so do the frames
 * behind it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/store/store_impl.h"

enum {
    PAGE = 4096, /* the size all our files are made with */
    WAL_HEADER = 32,
    FRAME_HEADER = 24,
    LEAF = 13, /* a page of a table's rows */
    MAX_LOCAL = PAGE - 35,
    MIN_LOCAL = (PAGE - 12) * 32 / 255 - 23,
    MAX_ROW = 1 << 30,
};

struct frame {
    uint32_t page;
    uint32_t index; /* in the log */
};

struct salvage {
    int fd, wal_fd; /* < 0: none */
    uint32_t n_pages;
    struct frame *frames; /* [n_frames] the latest of each page, by page */
    size_t n_frames;
    struct frame *broken; /* [n_broken] frames with a wrong checksum, in the log's order */
    size_t n_broken;
    store_found *found;
    void *arg;
    unsigned char page[PAGE], overflow[PAGE];
    struct cw_buf record;
    bool stopped;
};

static uint32_t be16(const unsigned char *p) {
    return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t be32(const unsigned char *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Up to `n` bytes at `at`; what is missing is zero. */
static bool read_at(int fd, off_t at, void *out, size_t n) {
    size_t have = 0;
    while (have < n) {
        ssize_t got = pread(fd, (char *)out + have, n - have, at + (off_t)have);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        have += (size_t)got;
    }
    memset((char *)out + have, 0, n - have);
    return have > 0;
}

/* ---- the log -------------------------------------------------------------------------------- */

struct wal {
    int fd;
    uint32_t n_frames; /* in the file */
    unsigned char header[WAL_HEADER];
    bool big;        /* its sums are of big-endian words */
    bool header_bad; /* the salts are then those of the first frame */
};

static void wal_sum(bool big, const unsigned char *p, size_t n, uint32_t sum[2]) {
    for (size_t i = 0; i + 8 <= n; i += 8) {
        uint32_t a = be32(p + i), b = be32(p + i + 4);
        if (!big) {
            a = __builtin_bswap32(a);
            b = __builtin_bswap32(b);
        }
        sum[0] += a + sum[1];
        sum[1] += b + sum[0];
    }
}

static bool wal_open(struct wal *w, const char *path) {
    struct stat st;
    *w = (struct wal){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (w->fd < 0) {
        return false;
    }
    if (fstat(w->fd, &st) != 0 || st.st_size < WAL_HEADER + FRAME_HEADER + PAGE ||
        !read_at(w->fd, 0, w->header, WAL_HEADER)) {
        close(w->fd);
        w->fd = -1;
        return false;
    }
    w->n_frames = (uint32_t)((st.st_size - WAL_HEADER) / (FRAME_HEADER + PAGE));
    uint32_t sum[2] = {0, 0};
    w->big = (be32(w->header) & 1) != 0;
    wal_sum(w->big, w->header, 24, sum);
    w->header_bad = sum[0] != be32(w->header + 24) || sum[1] != be32(w->header + 28) ||
                    (be32(w->header) | 1) != 0x377f0683 || be32(w->header + 8) != PAGE;
    if (w->header_bad) {
        const uint16_t probe = 1;
        w->big = *(const unsigned char *)&probe == 0; /* SQLite sums in the machine's own order */
        read_at(w->fd, WAL_HEADER + 8, w->header + 16, 8);
    }
    return true;
}

static off_t frame_at(uint32_t index) {
    return WAL_HEADER + (off_t)index * (FRAME_HEADER + PAGE);
}

/* Whether a frame is whole and of the log's present round: its salts are those of the header, and
 * its sum is right, counted on from the one that the frame before it stores. */
static bool wal_frame(const struct wal *w, uint32_t index, unsigned char *frame) {
    unsigned char before[FRAME_HEADER];
    uint32_t sum[2];
    if (!read_at(w->fd, frame_at(index), frame, FRAME_HEADER + PAGE)) {
        return false;
    }
    if (index == 0) {
        sum[0] = be32(w->header + 24);
        sum[1] = be32(w->header + 28);
    } else {
        read_at(w->fd, frame_at(index - 1), before, FRAME_HEADER);
        sum[0] = be32(before + 16);
        sum[1] = be32(before + 20);
    }
    wal_sum(w->big, frame, 8, sum);
    wal_sum(w->big, frame + FRAME_HEADER, PAGE, sum);
    return sum[0] == be32(frame + 16) && sum[1] == be32(frame + 20) &&
           memcmp(frame + 8, w->header + 16, 8) == 0;
}

bool store_wal_is_damaged(const char *wal_path) {
    struct wal w;
    unsigned char frame[FRAME_HEADER + PAGE];
    if (!wal_open(&w, wal_path)) {
        return false;
    }
    /* An end that is missing is what a kill leaves. A frame of this round that is there and wrong
     * is damage, even as the last one: its transaction would be passed over in silence. */
    bool broken = w.header_bad;
    bool damaged = false;
    for (uint32_t i = 0; i < w.n_frames && !damaged; i++) {
        bool good = wal_frame(&w, i, frame);
        damaged = good ? broken : memcmp(frame + 8, w.header + 16, 8) == 0;
        broken = broken || !good;
    }
    close(w.fd);
    return damaged;
}

static int by_page(const void *a, const void *b) {
    const struct frame *x = a, *y = b;
    if (x->page != y->page) {
        return x->page < y->page ? -1 : 1;
    }
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Which frames stand for which pages. */
static void read_log(struct salvage *v, const char *path) {
    struct wal w;
    unsigned char frame[FRAME_HEADER + PAGE];
    size_t n = 0, committed = 0;
    if (!wal_open(&w, path)) {
        return;
    }
    v->wal_fd = w.fd;
    v->frames = cw_reallocarray(NULL, w.n_frames, sizeof *v->frames);
    v->broken = cw_reallocarray(NULL, w.n_frames, sizeof *v->broken);
    uint32_t last = 0; /* frame of the last commit */
    for (uint32_t i = 0; i < w.n_frames; i++) {
        if (!wal_frame(&w, i, frame)) {
            if (memcmp(frame + 8, w.header + 16, 8) == 0) {
                v->broken[v->n_broken++] = (struct frame){be32(frame), i};
            }
            continue;
        }
        v->frames[n++] = (struct frame){be32(frame), i};
        if (be32(frame + 4) != 0) {
            committed = n;
            last = i;
        }
    }
    /* Behind the last commit stands what was not committed, or a transaction whose last frame is
     * broken: then its rows count as those of broken frames. */
    if (v->n_broken > 0 && v->broken[v->n_broken - 1].index > last) {
        for (size_t i = committed; i < n; i++) {
            v->broken[v->n_broken++] = v->frames[i];
        }
    }
    qsort(v->frames, committed, sizeof *v->frames, by_page);
    v->n_frames = 0;
    for (size_t i = 0; i < committed; i++) {
        if (v->n_frames > 0 && v->frames[v->n_frames - 1].page == v->frames[i].page) {
            v->n_frames--;
        }
        v->frames[v->n_frames++] = v->frames[i];
    }
}

/* ---- pages ---------------------------------------------------------------------------------- */

static const struct frame *find_frame(const struct salvage *v, uint32_t page) {
    size_t lo = 0, hi = v->n_frames;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (v->frames[mid].page < page) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo < v->n_frames && v->frames[lo].page == page ? &v->frames[lo] : NULL;
}

/* Which state of a page: the file's, the log's where it has one, or that of a broken frame. */
enum source { FROM_FILE, FROM_LOG, FROM_BROKEN };

static bool read_page(const struct salvage *v, uint32_t page, int source, unsigned char *out) {
    const struct frame *f = source >= FROM_LOG ? find_frame(v, page) : NULL;
    for (size_t i = 0; source == FROM_BROKEN && i < v->n_broken; i++) {
        f = v->broken[i].page == page ? &v->broken[i] : f;
    }
    if (f != NULL) {
        return read_at(v->wal_fd, frame_at(f->index) + FRAME_HEADER, out, PAGE);
    }
    return v->fd >= 0 && page >= 1 && page <= v->n_pages &&
           read_at(v->fd, (off_t)(page - 1) * PAGE, out, PAGE);
}

/* ---- cells ---------------------------------------------------------------------------------- */

/* SQLite's varint at p[0..n): seven bits a byte, high bits first, the ninth byte whole. Its length;
 * 0: it does not end in time. */
static size_t varint(const unsigned char *p, size_t n, uint64_t *out) {
    uint64_t v = 0;
    for (size_t i = 0; i < 9 && i < n; i++) {
        if (i == 8) {
            *out = v << 8 | p[i];
            return 9;
        }
        v = v << 7 | (p[i] & 0x7f);
        if (p[i] < 0x80) {
            *out = v;
            return i + 1;
        }
    }
    return 0;
}

struct column {
    uint64_t type;
    size_t at, len; /* in the record's body */
};

static size_t type_bytes(uint64_t type) {
    static const unsigned char lengths[10] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0};
    return type < 10 ? lengths[type] : (size_t)((type - 12) / 2);
}

/* The columns that the record header at p[0..n) announces. Their number, the sum column included; 0
 * when this is no record of `payload` bytes. */
static int read_header(const unsigned char *p, size_t n, uint64_t payload,
                       struct column columns[STORE_MAX_COLUMNS], size_t *body) {
    uint64_t header;
    size_t at = varint(p, n, &header);
    int count = 0;
    size_t offset = 0;
    if (at == 0 || header < 3 || header > n || header > payload) {
        return 0;
    }
    while (at < header) {
        uint64_t type;
        size_t used = varint(p + at, header - at, &type);
        if (used == 0 || count == STORE_MAX_COLUMNS || type == 10 || type == 11 || type == 7 ||
            type > 2 * (uint64_t)MAX_ROW) {
            return 0;
        }
        columns[count++] = (struct column){type, offset, type_bytes(type)};
        offset += type_bytes(type);
        at += used;
    }
    *body = header;
    return header + offset == payload ? count : 0;
}

/* Could these be the columns of the table? */
static bool fits(const struct store_table_info *t, const struct column *c, int count) {
    bool good = count == t->n + 1 && c[0].type == 0; /* the number stands beside the record */
    for (int i = 1; i < count && good; i++) {
        char type = i < t->n ? t->types[i] : 'i';
        good = type == 'i'   ? c[i].type >= 1 && c[i].type <= 9
               : type == 't' ? c[i].type >= 13 && c[i].type % 2 == 1
                             : c[i].type >= 12 && c[i].type % 2 == 0;
    }
    return good;
}

static int64_t integer(const unsigned char *p, uint64_t type) {
    if (type == 8 || type == 9) {
        return (int64_t)type - 8;
    }
    uint64_t v = p[0] >= 0x80 ? UINT64_MAX : 0;
    for (size_t i = 0; i < type_bytes(type); i++) {
        v = v << 8 | p[i];
    }
    return (int64_t)v;
}

/* The record's bytes from page and overflow pages into v->record. */
static bool gather(struct salvage *v, const unsigned char *local, size_t n_local, uint64_t payload,
                   uint32_t next, int source) {
    cw_buf_clear(&v->record);
    cw_buf_add(&v->record, local, n_local);
    while (v->record.len < payload) {
        if (next == 0 || !read_page(v, next, source, v->overflow)) {
            return false;
        }
        size_t left = (size_t)payload - v->record.len;
        cw_buf_add(&v->record, v->overflow + 4, left < PAGE - 4 ? left : PAGE - 4);
        next = be32(v->overflow);
    }
    return true;
}

static bool take_record(struct salvage *v, enum store_table table, int64_t id,
                        const struct column *c, size_t body) {
    const struct store_table_info *t = &store_tables[table];
    const unsigned char *p = (const unsigned char *)v->record.data + body;
    struct store_cell cells[STORE_MAX_COLUMNS] = {{.i = id}};
    for (int i = 1; i < t->n; i++) {
        if (t->types[i] == 'i') {
            cells[i].i = integer(p + c[i].at, c[i].type);
        } else {
            cells[i] = (struct store_cell){.p = p + c[i].at, .n = c[i].len};
        }
    }
    if (integer(p + c[t->n].at, c[t->n].type) != store_row_sum(table, cells)) {
        return false;
    }
    v->stopped = v->stopped || !v->found(v->arg, table, cells);
    return true;
}

/* A row that begins at `at` in the page; false: there is none. */
static bool try_cell(struct salvage *v, size_t at, int source) {
    const unsigned char *p = v->page;
    uint64_t payload, id;
    struct column columns[STORE_MAX_COLUMNS];
    size_t body;
    size_t used = varint(p + at, PAGE - at, &payload);
    if (used == 0 || payload < 8 || payload > MAX_ROW) {
        return false;
    }
    size_t begin = at + used;
    used = varint(p + begin, PAGE - begin, &id);
    begin += used;
    if (used == 0 || begin >= PAGE) {
        return false;
    }
    size_t n_local = (size_t)payload;
    if (payload > MAX_LOCAL) {
        size_t k = MIN_LOCAL + (size_t)(payload - MIN_LOCAL) % (PAGE - 4);
        n_local = k <= MAX_LOCAL ? k : MIN_LOCAL;
    }
    bool whole = n_local == payload;
    if (begin + n_local + (whole ? 0 : 4) > PAGE) {
        return false;
    }
    int count = read_header(p + begin, n_local, payload, columns, &body);
    for (int t = 0; t < STORE_N_TABLES && count > 0; t++) {
        if (!fits(&store_tables[t], columns, count)) {
            continue;
        }
        /* an overflow page may be whole in the file and not in the log, or the other way round */
        for (int from = source; from >= FROM_FILE; from--) {
            uint32_t next = whole ? 0 : be32(p + begin + n_local);
            if (gather(v, p + begin, n_local, payload, next, from) &&
                take_record(v, (enum store_table)t, (int64_t)id, columns, body)) {
                return true;
            }
        }
    }
    return false;
}

/* True when every cell of the page was a row of ours, so that older states of it need no look. */
static bool scan_page(struct salvage *v, uint32_t number, int source) {
    size_t top = number == 1 ? 100 : 0;
    uint32_t n_cells = be16(v->page + top + 3);
    bool clean = v->page[top] == LEAF && top + 8 + 2 * (size_t)n_cells <= PAGE;
    for (uint32_t i = 0; clean && i < n_cells && !v->stopped; i++) {
        size_t at = be16(v->page + top + 8 + 2 * i);
        clean = at >= top + 8 && at < PAGE && try_cell(v, at, source);
    }
    for (size_t at = top + 8; !clean && at + 8 < PAGE && !v->stopped; at++) {
        try_cell(v, at, source);
    }
    return clean;
}

int store_salvage(const char *path, const char *wal_path, store_found *found, void *arg,
                  struct cw_err *err) {
    struct salvage *v = cw_calloc(1, sizeof *v);
    struct stat st;
    int rc = CW_OK;
    v->found = found;
    v->arg = arg;
    v->wal_fd = -1;
    v->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (v->fd >= 0 && fstat(v->fd, &st) == 0) {
        v->n_pages = (uint32_t)((st.st_size + PAGE - 1) / PAGE);
    } else if (errno != ENOENT) {
        rc = cw_fail(err, CW_EIO, "%s: %s", path, strerror(errno));
    }
    read_log(v, wal_path);
    for (uint32_t page = 1; rc == CW_OK && page <= v->n_pages && !v->stopped; page++) {
        /* What the log has of the page is newer; the file's state counts where that is broken. */
        bool in_log = find_frame(v, page) != NULL;
        bool clean =
            in_log && read_page(v, page, FROM_LOG, v->page) && scan_page(v, page, FROM_LOG);
        if (!clean && read_page(v, page, FROM_FILE, v->page)) {
            scan_page(v, page, in_log ? FROM_LOG : FROM_FILE);
        }
    }
    for (size_t i = 0; rc == CW_OK && i < v->n_frames && !v->stopped; i++) {
        uint32_t page = v->frames[i].page;
        if (page > v->n_pages && read_page(v, page, FROM_LOG, v->page)) {
            scan_page(v, page, FROM_LOG);
        }
    }
    for (size_t i = 0; rc == CW_OK && i < v->n_broken && !v->stopped; i++) {
        const struct frame *whole = find_frame(v, v->broken[i].page);
        if ((whole == NULL || whole->index < v->broken[i].index) &&
            read_at(v->wal_fd, frame_at(v->broken[i].index) + FRAME_HEADER, v->page, PAGE)) {
            scan_page(v, 2,
                      FROM_BROKEN); /* whatever page it is, it is not one with the file's header */
        }
    }
    if (v->fd >= 0) {
        close(v->fd);
    }
    if (v->wal_fd >= 0) {
        close(v->wal_fd);
    }
    free(v->frames);
    free(v->broken);
    cw_buf_free(&v->record);
    free(v);
    return rc;
}
