/* SPDX-License-Identifier: MIT
 *
 * The template writes the conversation, the tokenizer reads it. Between the two, the ids of earlier
 * replies are put back where the template has written a reply's text unchanged: what the model said
 * is then in the prompt as it said it, and the cache holds.
 */
#include "core/chat/prompt.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "chinwag/utf8.h"
#include "core/chat/think.h"

void cw_prepared_free(struct cw_prepared *p) {
    cw_ids_free(&p->ids);
    free(p->tail);
    memset(p, 0, sizeof *p);
}

/* ---- rendering ----------------------------------------------------------------------------- */

/* A conversation on its way to the template; roles and texts are borrowed unless owned here. */
struct conversation {
    struct cw_message *messages;
    size_t n;
    bool parts;   /* the template wants contents as lists of parts */
    char *folded; /* a content made here, or NULL */
};

static void copy_messages(struct conversation *c, const struct cw_message *messages, size_t n) {
    c->n = n;
    c->messages = cw_reallocarray(NULL, n, sizeof *c->messages);
    if (n > 0) {
        memcpy(c->messages, messages, n * sizeof *c->messages);
    }
}

/* What of a request, beside its messages, a template is told. */
struct wish {
    const struct cw_loaded *m;
    int think;
    bool generation_prompt;
    struct tm now; /* the same for all renderings, which are compared */
};

static struct wish wish_of(const struct cw_loaded *m, int think, bool generation_prompt) {
    struct wish w = {.m = m, .think = think, .generation_prompt = generation_prompt};
    time_t now = time(NULL);
    localtime_r(&now, &w.now);
    return w;
}

static int render(const struct wish *w, const struct conversation *c, struct cw_prompt *out,
                  bool *refused, struct cw_err *err) {
    struct cw_template_var vars[CW_THINK_VARS];
    struct cw_template_input in = {
        .messages = c->messages,
        .n_messages = c->n,
        .add_generation_prompt = w->generation_prompt,
        .content_parts = c->parts,
        .bos = w->m->bos,
        .eos = w->m->eos,
        .now = w->now,
        .vars = vars,
        .n_vars = cw_think_vars(w->think, vars),
    };
    return cw_template_render(w->m->tmpl, &in, out, refused, err);
}

static bool is_role(const struct cw_message *m, const char *role) {
    return strcmp(m->role, role) == 0;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool all_blank(const struct cw_message *m) {
    size_t i = 0;
    while (i < m->len && is_blank(m->content[i])) {
        i++;
    }
    return i == m->len;
}

/* Is nothing of message i in the prompt, although it has text? */
static bool is_hidden(const struct conversation *c, size_t i, const struct cw_prompt *p) {
    for (size_t k = 0; k < p->n_spans; k++) {
        if (p->spans[k].message == (int32_t)i) {
            return false;
        }
    }
    return !all_blank(&c->messages[i]);
}

static bool hides_a_question(const struct conversation *c, const struct cw_prompt *p) {
    for (size_t i = 0; i < c->n; i++) {
        if (is_role(&c->messages[i], "user") && is_hidden(c, i, p)) {
            return true;
        }
    }
    return false;
}

/* Render; and where the template cannot take contents as text (it fails, or finds nothing in them)
 * as lists of parts, which templates of models that also see pictures want. */
static int render_either(const struct wish *w, struct conversation *c, struct cw_prompt *out,
                         bool *refused, struct cw_err *err) {
    int rc = render(w, c, out, refused, err);
    if (c->parts || (rc == CW_OK ? !hides_a_question(c, out) : rc != CW_ETEMPLATE || *refused)) {
        return rc;
    }
    struct cw_prompt other;
    c->parts = true;
    int other_rc = render(w, c, &other, refused, NULL);
    if (other_rc == CW_OK && !hides_a_question(c, &other)) {
        cw_prompt_free(out);
        *out = other;
        return CW_OK;
    }
    cw_prompt_free(&other);
    c->parts = *refused; /* it does look into parts, and then says no to something else */
    return rc;
}

/* Mark the system messages; with a prompt only those that are hidden in it. How many there are. */
static size_t mark_system(const struct conversation *c, const struct cw_prompt *p, bool *marks) {
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        marks[i] = is_role(&c->messages[i], "system") && (p == NULL || is_hidden(c, i, p));
        n += marks[i];
    }
    return n;
}

/* Does the template pass over the marked messages, whatever they say? One whose text is not in the
 * prompt may still have been obeyed, as a word that switches thinking off is. */
static bool passes_over(const struct wish *w, const struct conversation *c, const bool *marks,
                        const struct cw_prompt *p) {
    struct conversation other = {.parts = c->parts};
    struct cw_prompt probe;
    copy_messages(&other, c->messages, c->n);
    for (size_t i = 0; i < c->n; i++) {
        if (marks[i]) {
            other.messages[i].content = "x";
            other.messages[i].len = 1;
        }
    }
    bool same = render(w, &other, &probe, NULL, NULL) == CW_OK && probe.len == p->len &&
                memcmp(probe.text, p->text, p->len) == 0;
    cw_prompt_free(&probe);
    free(other.messages);
    return same;
}

/* Move the text of the marked messages to the front of the first user message. False when there is
 * none to take it. */
static bool fold(struct conversation *c, const bool *marks) {
    struct cw_buf text = {0};
    size_t kept = 0, user = SIZE_MAX;
    for (size_t i = 0; i < c->n && user == SIZE_MAX; i++) {
        user = is_role(&c->messages[i], "user") ? i : SIZE_MAX;
    }
    if (user == SIZE_MAX) {
        return false;
    }
    for (size_t i = 0; i < c->n; i++) {
        if (marks[i]) {
            cw_buf_add(&text, c->messages[i].content, c->messages[i].len);
            cw_buf_puts(&text, "\n\n");
        }
    }
    cw_buf_add(&text, c->messages[user].content, c->messages[user].len);
    c->messages[user].len = text.len;
    c->folded = cw_buf_take(&text);
    c->messages[user].content = c->folded;
    for (size_t i = 0; i < c->n; i++) {
        if (!marks[i]) {
            c->messages[kept++] = c->messages[i];
        }
    }
    c->n = kept;
    return true;
}

/* Does the prompt lack the last question? *partly: does it lack anything else that was said? */
static bool hides_the_last_question(const struct conversation *c, const struct cw_prompt *p,
                                    bool *partly) {
    size_t last = c->n;
    while (last > 0 && !is_role(&c->messages[last - 1], "user")) {
        last--;
    }
    *partly = false;
    for (size_t i = 0; i < c->n; i++) {
        *partly = *partly || (!is_role(&c->messages[i], "system") && is_hidden(c, i, p));
    }
    return last > 0 && is_hidden(c, last - 1, p);
}

/* Render; what the template has no place for, a system message that it refuses or passes over, goes
 * to the first user message. That it leaves out the last question is an error; some show the model
 * nothing but that. */
static int render_or_fold(const struct wish *w, struct conversation *c, struct cw_prompt *out,
                          bool *folded, bool *partly, struct cw_err *err) {
    bool refused = false, *marks = cw_calloc(c->n + 1, sizeof *marks);
    int rc = render_either(w, c, out, &refused, err);
    size_t n = rc == CW_OK || refused ? mark_system(c, rc == CW_OK ? out : NULL, marks) : 0;
    if (n > 0 && (rc != CW_OK || passes_over(w, c, marks, out)) && fold(c, marks)) {
        struct cw_err second;
        bool again = rc == CW_OK; /* else the first refusal is what the person should read */
        cw_prompt_free(out);
        rc = render_either(w, c, out, &refused, again ? err : &second);
        *folded = rc == CW_OK;
    }
    free(marks);
    if (rc == CW_OK && hides_the_last_question(c, out, partly)) {
        cw_prompt_free(out);
        return cw_fail(err, CW_ETEMPLATE, "the chat template leaves a message out of the prompt");
    }
    return rc;
}

/* ---- putting ids back ---------------------------------------------------------------------- */

bool cw_prompt_match(const struct cw_tokenizer *t, const int32_t *ids, size_t n,
                     const char *content, size_t len, size_t *begin, size_t *end) {
    struct cw_buf text = {0};
    size_t *at = cw_reallocarray(NULL, n + 1, sizeof *at); /* where each token's text begins */
    for (size_t i = 0; i < n; i++) {
        at[i] = text.len;
        cw_tokenizer_piece(t, ids[i], false, i == 0, &text);
    }
    at[n] = text.len;
    bool found = false;
    for (size_t i = n + 1; i-- > 0 && !found;) {
        if (text.len - at[i] < len || (len > 0 && memcmp(text.data + at[i], content, len) != 0)) {
            continue;
        }
        for (size_t k = i; k <= n && at[k] <= at[i] + len; k++) {
            if (at[k] == at[i] + len) {
                *begin = i;
                *end = k;
                found = true;
                break;
            }
        }
    }
    free(at);
    cw_buf_free(&text);
    return found;
}

/* True when the token writes one blank less at the beginning of a message. */
static bool loses_blank(const struct cw_tokenizer *t, int32_t id) {
    struct cw_buf first = {0}, later = {0};
    cw_tokenizer_piece(t, id, false, true, &first);
    cw_tokenizer_piece(t, id, false, false, &later);
    bool loses = first.len < later.len;
    cw_buf_free(&first);
    cw_buf_free(&later);
    return loses;
}

static void put_back(const struct cw_tokenizer *t, const struct cw_message *msg, int32_t index,
                     struct cw_prompt *p) {
    size_t span = SIZE_MAX;
    for (size_t i = 0; i < p->n_spans; i++) {
        if (p->spans[i].message == index) {
            if (span != SIZE_MAX) {
                return; /* written twice or in parts */
            }
            span = i;
        }
    }
    if (span == SIZE_MAX) {
        return;
    }
    struct cw_span *s = &p->spans[span];
    size_t begin, end;
    if (s->end - s->begin != msg->len || memcmp(p->text + s->begin, msg->content, msg->len) != 0 ||
        !cw_prompt_match(t, msg->ids, msg->n_ids, msg->content, msg->len, &begin, &end) ||
        begin == end) {
        return;
    }
    s->ids = msg->ids + begin;
    s->n_ids = end - begin;
    /* Where the template writes the blank that the reply's first token brings along, the token has
     * it already. */
    if (begin == 0 && span > 0 && p->spans[span - 1].message < 0 && s->begin > 0 &&
        p->text[s->begin - 1] == ' ' && loses_blank(t, msg->ids[0])) {
        s->begin--;
        p->spans[span - 1].end--;
    }
}

/* ---- a conversation ------------------------------------------------------------------------ */

/* Cut the prompt behind the last content of message `index`. */
static int cut_after(struct cw_prompt *p, int32_t index, struct cw_err *err) {
    size_t n = p->n_spans;
    while (n > 0 && p->spans[n - 1].message != index) {
        n--;
    }
    if (n == 0) {
        return cw_fail(err, CW_ETEMPLATE,
                       "the chat template does not show the reply that should go on");
    }
    p->n_spans = n;
    p->len = p->spans[n - 1].end;
    return CW_OK;
}

/* A file may ask for an end token behind every text; a prompt with one would be over. */
static int tokenise(struct cw_loaded *m, const struct cw_prompt *p, struct cw_ids *ids,
                    struct cw_err *err) {
    return cw_tokenizer_encode_spans(m->tokenizer, p->text, p->spans, p->n_spans, CW_TOK_BOS, ids,
                                     NULL, err);
}

static int need_template(const struct cw_loaded *m, struct cw_err *err) {
    if (!m->has_template) {
        return cw_fail(err, CW_ETEMPLATE,
                       "this model has no chat template: it only continues raw text");
    }
    if (m->tmpl == NULL) {
        return cw_fail(err, m->template_err.code, "%s", m->template_err.text);
    }
    return CW_OK;
}

static void put_all_back(const struct cw_loaded *m, const struct conversation *c,
                         struct cw_prompt *p) {
    for (size_t i = 0; i < c->n; i++) {
        const struct cw_message *msg = &c->messages[i];
        if (msg->ids != NULL && msg->n_ids > 0 && msg->len > 0) {
            put_back(m->tokenizer, msg, (int32_t)i, p);
        }
    }
}

static int prepare_chat(struct cw_loaded *m, const struct cw_request *req, struct cw_prepared *out,
                        struct cw_err *err);

static bool ends_with(const struct cw_buf *text, size_t end, const struct cw_message *msg) {
    return end >= msg->len &&
           (msg->len == 0 || memcmp(text->data + end - msg->len, msg->content, msg->len) == 0);
}

/* How many of a reply's ids the reply that goes on keeps: up to the end of its content. What stands
 * behind is dropped, be it an end token, a stop string or a text that was cut off, but not the
 * beginning of a character, which no content shows. A reply without content is all of its ids: it
 * was cut while it thought. 0: its content is another text than these ids'. */
static size_t kept_ids(const struct cw_tokenizer *t, const struct cw_message *msg) {
    struct cw_buf text = {0};
    size_t *at = cw_reallocarray(NULL, msg->n_ids + 1, sizeof *at); /* where each token begins */
    size_t n = msg->n_ids, kept = 0;
    for (size_t i = 0; i < n; i++) {
        at[i] = text.len;
        cw_tokenizer_piece(t, msg->ids[i], false, i == 0, &text);
    }
    at[n] = text.len;
    size_t whole = cw_utf8_complete(text.data, text.len);
    if (whole < text.len && ends_with(&text, whole, msg)) {
        kept = n;
    }
    for (size_t i = n; i > 0 && kept == 0; i--) {
        kept = ends_with(&text, at[i], msg) ? i : 0;
    }
    while (kept > 0 && cw_tokenizer_is_eog(t, msg->ids[kept - 1])) {
        kept--;
    }
    free(at);
    cw_buf_free(&text);
    return kept;
}

/* A reply that goes on by its ids: the prompt it had, and they behind it. */
static int prepare_ids(struct cw_loaded *m, const struct cw_request *req, size_t n_kept,
                       struct cw_prepared *out, struct cw_err *err) {
    struct cw_request before = *req;
    before.n_messages--;
    before.continue_reply = false;
    int rc = prepare_chat(m, &before, out, err);
    if (rc == CW_OK) {
        cw_ids_append(&out->ids, req->messages[before.n_messages].ids, n_kept);
        out->n_so_far = n_kept;
    }
    return rc;
}

static int prepare_chat(struct cw_loaded *m, const struct cw_request *req, struct cw_prepared *out,
                        struct cw_err *err) {
    /* A reply of no length goes on from its beginning. */
    bool going_on = req->continue_reply && req->messages[req->n_messages - 1].len > 0;
    struct conversation c = {0};
    struct cw_prompt p = {0};
    int rc = need_template(m, err);
    if (rc != CW_OK) {
        return rc;
    }
    if (req->continue_reply && req->messages[req->n_messages - 1].ids != NULL) {
        size_t n_kept = kept_ids(m->tokenizer, &req->messages[req->n_messages - 1]);
        if (n_kept > 0) {
            return prepare_ids(m, req, n_kept, out, err);
        }
    }
    copy_messages(&c, req->messages, req->n_messages - (req->continue_reply && !going_on ? 1 : 0));
    struct wish w = wish_of(m, req->think, !going_on);
    rc = render_or_fold(&w, &c, &p, &out->folded, &out->partly, err);
    if (rc == CW_OK && going_on) {
        rc = cut_after(&p, (int32_t)c.n - 1, err);
    }
    if (rc == CW_OK) {
        size_t tail = 0;
        for (size_t i = 0; i < p.n_spans; i++) {
            if (p.spans[i].message >= 0) {
                tail = going_on && i + 1 == p.n_spans ? p.spans[i].begin : p.spans[i].end;
            }
        }
        out->tail_len = p.len - tail;
        out->tail = cw_strndup(p.text + tail, out->tail_len);
        out->begins_text = !going_on;
        put_all_back(m, &c, &p);
        rc = tokenise(m, &p, &out->ids, err);
    }
    cw_prompt_free(&p);
    free(c.messages);
    free(c.folded);
    return rc;
}

/* ---- a draft ------------------------------------------------------------------------------- */

/* How much of text[0..n) will stay: up to the blanks before the last word. *sure: also its last
 * token is known, for a single blank and a letter follow, which begin a token of their own in every
 * vocabulary we know. */
static size_t stable_length(const char *text, size_t n, bool *sure) {
    size_t word = n;
    while (word > 0 && !is_blank(text[word - 1])) {
        word--;
    }
    size_t end = word;
    while (end > 0 && is_blank(text[end - 1])) {
        end--;
    }
    unsigned char next = word < n ? (unsigned char)text[word] : 0;
    bool letter = (next | 32) >= 'a' && (next | 32) <= 'z';
    *sure = letter && word - end == 1 && text[end] == ' ' && end > 0;
    return end;
}

/* Cut the prompt within the content of its last message, behind what will stay. */
static void cut_draft(struct cw_prompt *p, int32_t index, bool stand_in, bool *sure) {
    size_t k = 0;
    *sure = false;
    while (k < p->n_spans && p->spans[k].message != index) {
        k++;
    }
    if (k == p->n_spans) {
        p->n_spans = 0; /* the template does not show it: nothing is known */
        p->len = 0;
        return;
    }
    struct cw_span *s = &p->spans[k];
    size_t n = stand_in ? 0 : stable_length(p->text + s->begin, s->end - s->begin, sure);
    s->end = s->begin + n;
    p->len = s->end;
    p->n_spans = n > 0 ? k + 1 : k;
}

int cw_prompt_draft(struct cw_loaded *m, const struct cw_job *job, struct cw_ids *ids,
                    struct cw_err *err) {
    const struct cw_request *req = &job->req;
    struct conversation c = {0};
    struct cw_prompt p = {0};
    bool folded = false, partly, sure = false;
    if (req->messages == NULL || req->n_messages == 0 || req->continue_reply) {
        return cw_fail(err, CW_EINVAL, "a draft is the last message of a conversation");
    }
    int rc = need_template(m, err);
    if (rc != CW_OK) {
        return rc;
    }
    copy_messages(&c, req->messages, req->n_messages);
    struct cw_message *last = &c.messages[c.n - 1];
    bool blank = all_blank(last);
    if (blank) {
        last->content = "x"; /* shows where the words will stand */
        last->len = 1;
    }
    last->ids = NULL;
    struct wish w = wish_of(m, req->think, true);
    rc = render_or_fold(&w, &c, &p, &folded, &partly, err);
    if (rc == CW_OK) {
        cut_draft(&p, (int32_t)c.n - 1, blank, &sure);
        put_all_back(m, &c, &p);
        rc = tokenise(m, &p, ids, err);
    }
    if (rc == CW_OK && !sure && ids->n > 0) {
        ids->n--; /* it may yet become a longer one */
    }
    cw_prompt_free(&p);
    free(c.messages);
    free(c.folded);
    return rc;
}

/* ---- the whole ----------------------------------------------------------------------------- */

int cw_prompt_prepare(struct cw_loaded *m, const struct cw_job *job, struct cw_prepared *out,
                      struct cw_err *err) {
    const struct cw_request *req = &job->req;
    memset(out, 0, sizeof *out);
    if (req->messages != NULL) {
        return prepare_chat(m, req, out, err);
    }
    if (req->raw == NULL) {
        cw_ids_append(&out->ids, req->ids, req->n_ids);
        return CW_OK;
    }
    return cw_tokenizer_encode(m->tokenizer, req->raw, req->raw_len, CW_TOK_BOS | CW_TOK_SPECIAL,
                               &out->ids, err);
}
