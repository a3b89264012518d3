/* SPDX-License-Identifier: MIT
 *
 * Strings of which every byte knows where it came from.
 *
 * A string is an immutable view of bytes and of a list of runs. A run says up to which place (in
 * coordinates of its own, in which the string begins at `at`) the bytes have which origin: a
 * message's index, or CW_JTEMPLATE. A slice shares bytes and runs. Characters are UTF-8; a byte
 * that belongs to no valid character counts as one character by itself.
 */
#ifndef CHINWAG_TEMPLATE_JSTR_H
#define CHINWAG_TEMPLATE_JSTR_H

#include "arena.h"

enum { CW_JTEMPLATE = -1 };

struct cw_jrun {
    size_t end;
    int32_t origin;
};

struct cw_jstr {
    const char *data; /* [len], not terminated */
    size_t len;
    const struct cw_jrun *runs; /* ascending; the last ends at or after at + len */
    size_t n_runs;              /* >= 1 */
    size_t at;
    bool markup; /* result of |escape or |safe: what is added to it is escaped first */
};

/* The run of all text that the template or the application wrote. */
extern const struct cw_jrun cw_jtemplate_run;

/* data[0..len) of one origin, given by its run, which like the bytes must outlive the string. */
struct cw_jstr *cw_jstr_new(struct cw_jarena *a, const char *data, size_t len,
                            const struct cw_jrun *run);
/* Bytes [begin, end) of s. */
struct cw_jstr *cw_jstr_slice(struct cw_jarena *a, const struct cw_jstr *s, size_t begin,
                              size_t end);
int32_t cw_jstr_origin(const struct cw_jstr *s, size_t i);
/* The first message that wrote any byte of s, or CW_JTEMPLATE: the origin of what is newly made
 * out of s. */
int32_t cw_jstr_taint(const struct cw_jstr *s);

bool cw_jstr_is(const struct cw_jstr *s, const char *literal);
bool cw_jstr_equal(const struct cw_jstr *a, const struct cw_jstr *b);
int cw_jstr_compare(const struct cw_jstr *a, const struct cw_jstr *b); /* by code points */

size_t cw_jstr_chars(const struct cw_jstr *s);
/* The byte at which character n begins (len if there are fewer). */
size_t cw_jstr_char_at(const struct cw_jstr *s, size_t n);
/* Decode the character at byte i < len: its length, *cp its value (a lone byte: 0xdc00 + byte, as
 * Python's surrogateescape has it, so that it equals no character). */
size_t cw_jstr_decode(const struct cw_jstr *s, size_t i, uint32_t *cp);
/* The byte at which the character that ends at byte i > 0 begins. */
size_t cw_jstr_before(const struct cw_jstr *s, size_t i);

enum { CW_JNOWHERE = -1 };
/* First (last) place in s[from, to) where needle stands, or CW_JNOWHERE. */
ptrdiff_t cw_jstr_find(const struct cw_jstr *s, const struct cw_jstr *needle, size_t from,
                       size_t to);
ptrdiff_t cw_jstr_rfind(const struct cw_jstr *s, const struct cw_jstr *needle, size_t from,
                        size_t to);

/* A string in the making. */
struct cw_jbuild {
    struct cw_jarena *arena;
    char *data;
    size_t len, cap;
    size_t max_bytes; /* refused beyond; SIZE_MAX: the arena's own limit */
    struct cw_jrun *runs;
    size_t n_runs, cap_runs;
};

struct cw_jbuild cw_jbuild_new(struct cw_jarena *a);
/* Make room for so many bytes at once. */
void cw_jbuild_reserve(struct cw_jbuild *b, size_t bytes);
void cw_jbuild_add(struct cw_jbuild *b, const char *data, size_t n, int32_t origin);
void cw_jbuild_puts(struct cw_jbuild *b, const char *s, int32_t origin);
void cw_jbuild_char(struct cw_jbuild *b, uint32_t cp, int32_t origin);
void cw_jbuild_str(struct cw_jbuild *b, const struct cw_jstr *s);
void cw_jbuild_slice(struct cw_jbuild *b, const struct cw_jstr *s, size_t begin, size_t end);
/* The string; the builder is spent. */
struct cw_jstr *cw_jbuild_end(struct cw_jbuild *b);

#endif
