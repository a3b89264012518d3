/* SPDX-License-Identifier: MIT
 *
 * From a request to the ids of its prompt. Runs in the generator's thread.
 */
#ifndef CW_PROMPT_H
#define CW_PROMPT_H

#include "core/chat/job.h"
#include "core/chat/loader.h"

struct cw_prepared {
    struct cw_ids ids;
    char *tail; /* what the template wrote after the last content: the reply stands right behind */
    size_t tail_len;
    bool begins_text; /* the reply is the beginning of a message */
    size_t n_so_far;  /* how many ids at the end are of the reply that goes on */
    bool folded;      /* the template refused a system message, or passed over it; its text went to
                       * the first user message */
    bool partly;      /* the template left out something that was said before the last question */
};

int cw_prompt_prepare(struct cw_loaded *m, const struct cw_job *job, struct cw_prepared *out,
                      struct cw_err *err);
void cw_prepared_free(struct cw_prepared *p);

/* Of a prompt whose last message is still being written: the ids that will stay, however it goes
 * on. They are those up to the last whole word. */
int cw_prompt_draft(struct cw_loaded *m, const struct cw_job *job, struct cw_ids *ids,
                    struct cw_err *err);

/* The stretch [*begin, *end) of a reply's ids[0..n) whose text is content[0..len), the last such if
 * there are several; false if no tokens begin and end where it does. */
bool cw_prompt_match(const struct cw_tokenizer *t, const int32_t *ids, size_t n,
                     const char *content, size_t len, size_t *begin, size_t *end);

#endif
