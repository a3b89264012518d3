/* SPDX-License-Identifier: MIT
 *
 * The tables' descriptions, and rows in and out of SQLite. See rows.h.
 */
#include "core/store/rows.h"

#include <string.h>

#define COUNT(types) ((int)sizeof(types) - 1)
#define TABLE(name, columns, types)                                                                \
    { name, columns, types, COUNT(types) }

const struct store_table_info store_tables[STORE_N_TABLES] = {
    [STORE_META] = TABLE("meta", "id,value", "it"),
    [STORE_CONVERSATIONS] =
        TABLE("conversations",
              "id,title,named,created,updated,model,hash,system,settings,leaf,n_messages,deleted",
              "itiiitttbiii"),
    [STORE_MESSAGES] =
        TABLE("messages",
              "id,conversation,parent,role,created,state,text,reasoning,stop,seed,first_position,"
              "n_tokens,figures,sampling,model,hash,arithmetic,extra",
              "iiiiiittiiiibbtttb"),
    [STORE_PIECES] = TABLE("pieces", "id,message,text,reasoning", "iitt"),
    [STORE_TOKENS] = TABLE("tokens", "id,message,first,n,data", "iiiib"),
    [STORE_CHANGES] = TABLE("changes", "id,message,data", "iib"),
};

void store_cell_str(struct store_cell *cell, struct cw_str s) {
    cell->p = s.data != NULL ? s.data : "";
    cell->n = s.data != NULL ? s.len : 0;
}

struct cw_str store_cell_get(const struct store_cell *cell) {
    return (struct cw_str){cell->p, cell->n};
}

/* FNV-1a, 64 bits (Fowler, Noll, Vo): every step is a bijection of the state, so that one changed
 * byte always changes the sum. */
static uint64_t add_bytes(uint64_t h, const void *data, size_t n) {
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ p[i]) * 0x100000001b3u;
    }
    return h;
}

static uint64_t add_number(uint64_t h, uint64_t v) {
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(v >> 8 * i);
    }
    return add_bytes(h, bytes, sizeof bytes);
}

int64_t store_row_sum(enum store_table table, const struct store_cell *cells) {
    const struct store_table_info *t = &store_tables[table];
    uint64_t h = add_bytes(0xcbf29ce484222325u, t->name, strlen(t->name));
    for (int i = 0; i < t->n; i++) {
        if (t->types[i] == 'i') {
            h = add_number(h, (uint64_t)cells[i].i);
        } else {
            h = add_number(h, cells[i].n);
            h = add_bytes(h, cells[i].p, cells[i].n);
        }
    }
    return (int64_t)h;
}

bool store_row_read(sqlite3_stmt *st, enum store_table table, struct store_cell *cells) {
    const struct store_table_info *t = &store_tables[table];
    if (sqlite3_column_count(st) < t->n + 1 || sqlite3_column_type(st, t->n) != SQLITE_INTEGER) {
        return false;
    }
    for (int i = 0; i < t->n; i++) {
        int type = sqlite3_column_type(st, i);
        cells[i] = (struct store_cell){0};
        if (t->types[i] == 'i' && type == SQLITE_INTEGER) {
            cells[i].i = sqlite3_column_int64(st, i);
        } else if (t->types[i] != 'i' && type == (t->types[i] == 't' ? SQLITE_TEXT : SQLITE_BLOB)) {
            cells[i].p =
                type == SQLITE_TEXT ? sqlite3_column_text(st, i) : sqlite3_column_blob(st, i);
            cells[i].n = (size_t)sqlite3_column_bytes(st, i);
            if (cells[i].p == NULL) {
                if (cells[i].n != 0) {
                    return false; /* no memory for it */
                }
                cells[i].p = "";
            }
        } else {
            return false;
        }
    }
    return sqlite3_column_int64(st, t->n) == store_row_sum(table, cells);
}

void store_row_bind(sqlite3_stmt *st, enum store_table table, const struct store_cell *cells) {
    const struct store_table_info *t = &store_tables[table];
    for (int i = 0; i < t->n; i++) {
        const void *p = cells[i].p != NULL ? cells[i].p : "";
        if (t->types[i] == 'i') {
            sqlite3_bind_int64(st, i + 1, cells[i].i);
        } else if (t->types[i] == 't') {
            sqlite3_bind_text64(st, i + 1, p, cells[i].n, SQLITE_STATIC, SQLITE_UTF8);
        } else {
            sqlite3_bind_blob64(st, i + 1, p, cells[i].n, SQLITE_STATIC);
        }
    }
    sqlite3_bind_int64(st, t->n + 1, store_row_sum(table, cells));
}

char *store_row_put_sql(enum store_table table) {
    const struct store_table_info *t = &store_tables[table];
    struct cw_buf sql = {0};
    cw_buf_printf(&sql, "INSERT INTO %s(%s,sum) VALUES(", t->name, t->columns);
    for (int i = 0; i < t->n + 1; i++) {
        cw_buf_printf(&sql, "%s?%d", i > 0 ? "," : "", i + 1);
    }
    cw_buf_puts(&sql, ") ON CONFLICT(id) DO UPDATE SET ");
    const char *p = strchr(t->columns, ',');
    for (; p != NULL; p = strchr(p + 1, ',')) {
        int len = (int)strcspn(p + 1, ",");
        cw_buf_printf(&sql, "%.*s=excluded.%.*s,", len, p + 1, len, p + 1);
    }
    cw_buf_puts(&sql, "sum=excluded.sum");
    return cw_buf_take(&sql);
}
