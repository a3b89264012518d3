/* SPDX-License-Identifier: MIT
 *
 * Rows: what the tables hold, the checksum of a row, and how tokens, settings and figures are
 * packed. The same description serves writing, reading, checking and salvage.
 *
 * Every row of every table ends with the FNV-1a sum (64 bits) of its table's tag and all of its
 * other columns. Column 0 is the row's number.
 */
#ifndef CORE_STORE_ROWS_H
#define CORE_STORE_ROWS_H

#include <sqlite3.h>

#include "chinwag/store.h"

enum store_table {
    STORE_META,
    STORE_CONVERSATIONS,
    STORE_MESSAGES,
    STORE_PIECES,
    STORE_TOKENS,
    STORE_CHANGES,
    STORE_N_TABLES
};

/* Columns, as they are in the tables. */
enum { META_ID, META_VALUE };
enum { STORE_META_VERSION = 1, STORE_META_PURGE }; /* rows of the first table */
enum {
    C_ID,
    C_TITLE,
    C_NAMED, /* by a person: the title stays */
    C_CREATED,
    C_UPDATED,
    C_MODEL,
    C_HASH,
    C_SYSTEM,
    C_SETTINGS,
    C_LEAF,
    C_N_MESSAGES,
    C_DELETED
};
enum {
    M_ID,
    M_CONVERSATION,
    M_PARENT,
    M_ROLE,
    M_CREATED,
    M_STATE,
    M_TEXT,
    M_REASONING,
    M_STOP,
    M_SEED,
    M_FIRST_POSITION,
    M_N_TOKENS,
    M_FIGURES,
    M_SAMPLING,
    M_MODEL,
    M_HASH,
    M_ARITHMETIC,
    M_EXTRA
};
enum { P_ID, P_MESSAGE, P_TEXT, P_REASONING };
enum { T_ID, T_MESSAGE, T_FIRST, T_N, T_DATA };
enum { X_ID, X_MESSAGE, X_DATA };

/* Of a message. Its text is in the text index in the states DONE and AGAIN. */
enum store_state { STORE_GROWING, STORE_DONE, STORE_AGAIN, STORE_LOST };

enum { STORE_MAX_COLUMNS = 19 }; /* the sum included */

struct store_table_info {
    const char *name;
    const char *columns; /* "id,title,...": without the sum */
    const char *types;   /* a letter each: i integer, t text, b blob */
    int n;               /* columns without the sum */
};
extern const struct store_table_info store_tables[STORE_N_TABLES];

/* A value; which members count is up to the column's type. */
struct store_cell {
    int64_t i;
    const void *p;
    size_t n;
};
void store_cell_str(struct store_cell *cell, struct cw_str s);
struct cw_str store_cell_get(const struct store_cell *cell);

int64_t store_row_sum(enum store_table table, const struct store_cell *cells);
/* The row a statement stands on, all columns in order; false: it is damaged. The cells are valid
 * until the statement moves. */
bool store_row_read(sqlite3_stmt *st, enum store_table table, struct store_cell *cells);
void store_row_bind(sqlite3_stmt *st, enum store_table table, const struct store_cell *cells);
/* "INSERT ... ON CONFLICT DO UPDATE" of a whole row. Caller must free. */
char *store_row_put_sql(enum store_table table);

enum store_statement {
    STORE_S_PUT, /* one a table */
    STORE_S_CONVERSATION = STORE_S_PUT + STORE_N_TABLES,
    STORE_S_MESSAGE,
    STORE_S_PIECES_OF,
    STORE_S_TOKENS_OF,
    STORE_S_CHANGES_OF,
    STORE_S_N_TOKENS,
    STORE_S_DROP_PIECES,
    STORE_S_DROP_TOKENS,
    STORE_S_DROP_CHANGES,
    STORE_S_MESSAGES_OF,
    STORE_S_UNFINISHED,
    STORE_S_INDEX_ADD,
    STORE_S_INDEX_DROP,
    STORE_S_LIST,
    STORE_S_IDS,
    STORE_S_DELETED,
    STORE_S_DROP_CONVERSATION,
    STORE_S_PURGE_DUE,
    STORE_S_SEARCH,
    STORE_S_NEXT_PIECE,
    STORE_S_NEXT_TOKENS,
    STORE_S_NEXT_CHANGE,
    STORE_N_STATEMENTS
};

/* ---- packed values; unpacking checks every length, false: not ours ---- */

void store_pack_tokens(struct cw_buf *out, const struct cw_store_token *tokens, size_t n);
/* Exactly n tokens. */
bool store_unpack_tokens(const void *data, size_t len, struct cw_store_token *tokens, size_t n);
void store_pack_sampling(struct cw_buf *out, const struct cw_sampling *s);
bool store_unpack_sampling(const void *data, size_t len, struct cw_sampling *s);
void store_pack_figures(struct cw_buf *out, const struct cw_figures *f);
bool store_unpack_figures(const void *data, size_t len, struct cw_figures *f);
void store_pack_change(struct cw_buf *out, const struct cw_store_change *c);
bool store_unpack_change(const void *data, size_t len, struct cw_store_change *c);

#endif
