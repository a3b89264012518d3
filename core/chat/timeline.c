/* SPDX-License-Identifier: MIT
 *
 * Sharing pages and parting from them. */
#include "core/chat/timeline.h"

#include <stdlib.h>
#include <string.h>

static size_t pages_of(size_t n) {
    return (n + CW_PAGE_CELLS - 1) / CW_PAGE_CELLS;
}

int cw_timeline_init(struct cw_timeline *t, struct cw_kvcache *c, size_t cap, struct cw_err *err) {
    *t = (struct cw_timeline){.cap = cap, .number = ++c->last_writer};
    t->ids = cw_large_alloc(cap * sizeof *t->ids);
    t->pages = cw_large_alloc(pages_of(cap) * sizeof *t->pages);
    if (t->ids == NULL || t->pages == NULL) {
        cw_large_free(t->ids, cap * sizeof *t->ids);
        cw_large_free(t->pages, pages_of(cap) * sizeof *t->pages);
        *t = (struct cw_timeline){0};
        return cw_fail(err, CW_ENOMEM, "no memory for %zu token ids", cap);
    }
    return CW_OK;
}

static void resign(struct cw_timeline *t, struct cw_kvcache *c, uint32_t page) {
    if (c->writer[page] == t->number) {
        c->writer[page] = 0;
    }
}

static void keep_pages(struct cw_timeline *t, struct cw_kvcache *c, size_t n_pages) {
    while (t->n_pages > n_pages) {
        uint32_t page = t->pages[--t->n_pages];
        resign(t, c, page);
        cw_kvcache_drop(c, page);
    }
}

void cw_timeline_free(struct cw_timeline *t, struct cw_kvcache *c) {
    keep_pages(t, c, 0);
    cw_large_free(t->ids, t->cap * sizeof *t->ids);
    cw_large_free(t->pages, pages_of(t->cap) * sizeof *t->pages);
    *t = (struct cw_timeline){0};
}

void cw_timeline_truncate(struct cw_timeline *t, struct cw_kvcache *c, size_t n) {
    if (n < t->n && n % CW_PAGE_CELLS != 0) { /* others may need what it wrote behind n */
        resign(t, c, t->pages[n / CW_PAGE_CELLS]);
    }
    keep_pages(t, c, pages_of(n));
    t->n = n;
}

void cw_timeline_share(struct cw_timeline *t, struct cw_kvcache *c, const struct cw_timeline *from,
                       size_t n) {
    size_t n_pages = pages_of(n);
    for (size_t i = 0; i < n_pages; i++) { /* before its own go: they may be the same */
        cw_kvcache_hold(c, from->pages[i]);
    }
    keep_pages(t, c, 0);
    memcpy(t->pages, from->pages, n_pages * sizeof *t->pages);
    memcpy(t->ids, from->ids, n * sizeof *t->ids);
    t->n_pages = n_pages;
    t->n = n;
}

/* Become the writer of the page that the next cell lies in, or of a copy of it. */
static bool part(struct cw_timeline *t, struct cw_kvcache *c) {
    uint32_t cells = (uint32_t)(t->n % CW_PAGE_CELLS), copy;
    uint32_t *page = &t->pages[t->n / CW_PAGE_CELLS];
    if (cells == 0 || c->writer[*page] == t->number) {
        return true;
    }
    if (c->holders[*page] == 1 || (c->writer[*page] == 0 && c->filled[*page] == cells)) {
        c->writer[*page] = t->number;
        c->filled[*page] = (uint16_t)cells;
        return true;
    }
    if (!cw_kvcache_take(c, t->number, &copy)) {
        return false;
    }
    for (int i = 0; i < c->n_layers; i++) {
        cw_kv_copy(&c->layers[i], copy, *page, cells);
    }
    c->filled[copy] = (uint16_t)cells;
    cw_kvcache_drop(c, *page);
    *page = copy;
    return true;
}

bool cw_timeline_reserve(struct cw_timeline *t, struct cw_kvcache *c, size_t n) {
    if (n > 0 && !part(t, c)) {
        return false;
    }
    while (t->n_pages < pages_of(t->n + n)) {
        if (!cw_kvcache_take(c, t->number, &t->pages[t->n_pages])) {
            return false;
        }
        t->n_pages++;
    }
    return true;
}

void cw_timeline_append(struct cw_timeline *t, struct cw_kvcache *c, const int32_t *ids, size_t n) {
    if (n == 0) {
        return;
    }
    size_t first = t->n / CW_PAGE_CELLS, end = t->n + n;
    memcpy(t->ids + t->n, ids, n * sizeof *ids);
    t->n = end;
    for (size_t i = first; i < pages_of(end); i++) {
        size_t cells = end - i * CW_PAGE_CELLS;
        c->filled[t->pages[i]] = (uint16_t)(cells < CW_PAGE_CELLS ? cells : CW_PAGE_CELLS);
    }
}

size_t cw_timeline_common(const struct cw_timeline *t, const int32_t *ids, size_t n) {
    return cw_ids_common(t->ids, t->n, ids, n);
}
