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
#include "chinwag/template.h"

struct cw_think {
    const struct cw_tokenizer *tokenizer; /* may be NULL: text only */
    bool channels;                        /* the vocabulary has channel tokens */
    unsigned wraps;                       /* ways to wrap an answer that the template knows, bits */
    enum {
        CW_THINK_START,  /* nothing but blanks yet; an opening marker may come */
        CW_THINK_IN,     /* until the closing marker */
        CW_THINK_AFTER,  /* nothing but blanks behind a thought; the answer may be wrapped */
        CW_THINK_ANSWER, /* in a wrapped answer, until its closing marker */
        CW_THINK_OUT,    /* the answer */
        CW_THINK_HEADER, /* between channel tokens: who speaks in which channel */
        CW_THINK_CHANNEL /* in the body of a thinking channel */
    } state;
    const char *close;  /* in CW_THINK_IN and CW_THINK_ANSWER: the closing marker, as text */
    const char *title;  /* what the family writes behind its opening marker, not seen yet; NULL */
    bool named;         /* in CW_THINK_HEADER: the channel's name is what is read */
    bool trim;          /* drop line ends: a marker went before */
    struct cw_buf held; /* may still become a marker, or line ends before one */
};

/* A stretch of text, all thinking or all not. Non-zero ends the feeding with that code. */
typedef int cw_think_emit(void *arg, bool thinking, const char *text, size_t n);

/* `tail` is the end of the prompt that the template wrote after the last content: it may have
 * opened a thinking section already. `source` is the template, NULL: none. Some families wrap their
 * answer too; since a person may ask for the same tags, they are taken off only where the template
 * speaks of them. */
void cw_think_init(struct cw_think *t, const struct cw_tokenizer *tokenizer, const char *tail,
                   size_t n, struct cw_str source);
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

/* ---- asking for it -------------------------------------------------------------------------
 *
 * `think` is -1 (as the template does), 0 (off), 1 (on), 2 to 4 (low, medium, high). */

enum { CW_THINK_VARS = 3 };
/* The variables by which templates take it; returns how many. */
size_t cw_think_vars(int think, struct cw_template_var out[CW_THINK_VARS]);

/* What is to be told of a template that cannot do as is asked; NULL: it can. */
const char *cw_think_doubt(const struct cw_template *t, const char *bos, const char *eos,
                           int think);

#endif
