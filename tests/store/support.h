/* SPDX-License-Identifier: MIT
 *
 * For the tests of the store: folders, conversations made by rule, waiting for events.
 */
#ifndef TESTS_STORE_SUPPORT_H
#define TESTS_STORE_SUPPORT_H

#include "chinwag/store.h"

/* A new empty folder; removed, with all that is in it, by drop_dir, which frees the name. */
char *make_dir(void);
void drop_dir(char *dir);
char *path_in(const char *dir, const char *name); /* caller must free */

struct cw_store *open_store(const char *dir);
struct cw_store *open_store_with(const char *dir, const char *vfs, size_t max_queued);
/* What destroying says must be `code`. */
void close_store(struct cw_store *s, int code);

struct cw_str str(const char *s);
bool str_is(struct cw_str a, const char *s);

/* A conversation with `n` messages in a line, questions and replies in turn, all different and
 * made from `seed`; its id. Queued, not waited for. */
int64_t put_chat(struct cw_store *s, int n, unsigned seed);
/* The text of message `i` of such a conversation. */
void chat_text(unsigned seed, int i, struct cw_buf *out);
/* Settings like those of a chat, every byte of them set. */
void some_sampling(struct cw_sampling *s);
/* Tokens made from `seed`. Caller must free. */
struct cw_store_token *make_tokens(size_t n, unsigned seed);
void expect_tokens(const struct cw_store_token *got, const struct cw_store_token *want, size_t n);

void expect_saved(struct cw_store *s);
/* The next event of this kind, waiting for it; others are freed. */
struct cw_store_event *await_event(struct cw_store *s, enum cw_store_event_kind kind);
struct cw_store_event *load(struct cw_store *s, int64_t id); /* LOADED, or the test fails */
struct cw_store_event *list(struct cw_store *s, const char *query);

/* Whether the bytes stand in any file of the folder. */
bool dir_holds(const char *dir, const char *word);
/* Files of the folder whose names begin so. */
size_t count_files(const char *dir, const char *begin);
void copy_file(const char *from, const char *to);
char *read_file(const char *path, size_t *n);
void write_file(const char *path, const void *data, size_t n);

#endif
