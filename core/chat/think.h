/* SPDX-License-Identifier: MIT
 *
 * Which part of a reply is thinking. Families mark it differently: <think> ... </think> and its
 * like, as control tokens, as ordinary tokens or as plain text at the start of the reply; channels
 * with names (gpt-oss). The markers themselves, and the line ends that dress them, are no part of
 * the reply's text. One thread.
 */
#ifndef CW_THINK_H
#define CW_THINK_H

#include "chinwag/mem.h"
#include "chinwag/tokenizer.h"

struct cw_think {
    const struct cw_tokenizer *tokenizer; /* may be NULL: text only */
    bool channels;                        /* the vocabulary has channel tokens */
    enum {
        CW_THINK_START,  /* nothing but blanks yet; an opening marker may come */
        CW_THINK_IN,     /* until the closing marker */
        CW_THINK_OUT,    /* the answer */
        CW_THINK_HEADER, /* between channel tokens: who speaks in which channel */
        CW_THINK_CHANNEL /* in the body of a thinking channel */
    } state;
    const char *close;  /* in CW_THINK_IN: the closing marker, as text */
    bool trim;          /* drop line ends: a marker went before */
    struct cw_buf held; /* may still become a marker, or line ends before one */
};

/* A stretch of text, all thinking or all not. Non-zero ends the feeding with that code. */
typedef int cw_think_emit(void *arg, bool thinking, const char *text, size_t n);

/* `tail` is the end of the prompt that the template wrote after the last content: it may have
 * opened a thinking section already. */
void cw_think_init(struct cw_think *t, const struct cw_tokenizer *tokenizer, const char *tail,
                   size_t n);
void cw_think_free(struct cw_think *t);

/* Take a token and the text that was released with it (text of the tokens before, if the token is
 * a control token). id -1: text only. */
int cw_think_feed(struct cw_think *t, int32_t id, const char *text, size_t n, cw_think_emit *emit,
                  void *arg);
/* The reply is over: what is held is text. */
int cw_think_flush(struct cw_think *t, cw_think_emit *emit, void *arg);

/* What the model would write to end the section that is under way and begin its answer: markers and
 * the line ends that its family puts around them, appended to *out. False outside of a section,
 * with *settled telling whether a section may no longer come of what is being read. */
bool cw_think_closing(const struct cw_think *t, struct cw_buf *out, bool *settled);

/* Whether the reply is in a thinking section now. */
bool cw_think_now(const struct cw_think *t);

#endif
