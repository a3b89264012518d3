/* SPDX-License-Identifier: MIT
 *
 * Random moves in the tree of a conversation: asking, editing either side, other replies, one or
 * several at once, going on, taking an alternative, undo, redo, siblings, turns that leave the
 * context and come back, typing ahead, and taking the conversation up from a snapshot. Whatever
 * went before, the draws of the reply that follows are those of a generator that was never asked
 * anything else, bit by bit: ids, probabilities, entropy and alternatives.
 *
 * CHINWAG_MOVES sets how many moves are made with each model.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/chat.h"
#include "chinwag/snapshot.h"
#include "tests/chat/support.h"
#include "tests/support/mkgguf.h"

static const char template[] = "{% for m in messages %}<{{ m.role }}>{{ m.content }}\n{% endfor %}"
                               "{% if add_generation_prompt %}<assistant>{% endif %}";
static const char key[] = "0123456789abcdef";

/* Plain, with a window, with a window and sinks, quantised. */
static const char *const models[] = {"tiny-llama-Q4_0.gguf", "tiny-gemma3-F32.gguf",
                                     "tiny-gpt-oss-MXFP4.gguf", "tiny-qwen3-F32.gguf"};
enum { N_MODELS = sizeof models / sizeof models[0], MOVES = 250, MAX_DRAWS = 64 };

struct draws {
    struct cw_draw v[CW_MAX_REPLIES][MAX_DRAWS];
    size_t n[CW_MAX_REPLIES];
    enum cw_stop stop;
    int code;
    size_t n_prompt, n_reused, n_restored;
};

struct walk {
    struct client c;
    struct chat chat;
    const char *model;
    char dir[1100];
    uint64_t r;
    size_t n_prompt, n_reused, n_restored, n_checked;
};

static uint64_t draw(struct walk *w, uint64_t below) {
    w->r = w->r * 6364136223846793005u + 1442695040888963407u;
    return (w->r >> 33) % below;
}

static struct cw_generator_options options(const struct walk *w, bool kept) {
    struct cw_generator_options opt = client_options(tiny_model(w->model));
    opt.model.exact = true;
    opt.chat_template = template;
    opt.session.n_ctx = 900;
    opt.session.chunk = kept ? 32 : 0;
    if (kept) {
        opt.snapshot_dir = w->dir;
    }
    return opt;
}

static void sampling(struct client *c) {
    struct cw_sampling s;
    cw_sampling_default(&s);
    s.temp = 1.2f;
    s.penalty_repeat = 1.1f;
    cw_generator_publish(c->g, &s);
}

static void open_walk(struct walk *w) {
    struct cw_generator_options opt = options(w, true);
    client_open(&w->c, &opt);
    sampling(&w->c);
}

static void words(struct walk *w, struct cw_buf *out, size_t n) {
    static const char *const some[] = {"the ", "sea ",  "is ",  "never ", "blue, ",       "says ",
                                       "who ", "ever ", "saw ", "it\n",   "gr\xc3\xbcn ", "7 "};
    while (n-- > 0) {
        cw_buf_puts(out, some[draw(w, sizeof some / sizeof some[0])]);
    }
}

/* ---- asking --------------------------------------------------------------------------------- */

/* All draws of a request. With `to` the replies are written there as they come. */
static void take(struct client *c, const struct cw_request *req, struct chat_message **to,
                 struct draws *out) {
    struct cw_event ev;
    memset(out, 0, sizeof *out);
    uint32_t number;
    ck_assert_int_eq(cw_generator_start(c->g, req, &number, NULL), CW_OK);
    do {
        memset(&ev, 0, sizeof ev);
        while (!cw_ring_pop(c->ring, &ev)) {
            cw_ring_ack(c->ring);
        }
        if (ev.kind == CW_EV_TOKEN && ev.u.token.first_part) {
            ck_assert_uint_lt(out->n[ev.reply], MAX_DRAWS);
            out->v[ev.reply][out->n[ev.reply]++] = ev.u.token.draw;
        }
        if (ev.kind == CW_EV_TOKEN && to != NULL && ev.u.token.first_part) {
            chat_message_token(to[ev.reply], &ev.u.token.draw, ev.u.token.thinking, ev.text,
                               ev.n_text);
        } else if (ev.kind == CW_EV_TOKEN && to != NULL) {
            chat_message_more(to[ev.reply], ev.u.token.thinking, ev.text, ev.n_text);
        }
    } while (ev.kind != CW_EV_DONE);
    out->stop = ev.u.done.stop;
    out->code = ev.u.done.code;
    out->n_prompt = ev.figures.n_prompt;
    out->n_reused = ev.figures.n_reused;
    out->n_restored = ev.figures.n_restored;
}

static void check_fresh(struct walk *w, const struct cw_request *req, const struct draws *got,
                        const char *move) {
    static struct draws want;
    struct client fresh;
    struct cw_generator_options opt = options(w, false);
    struct cw_request same = *req;
    same.snapshot_key = NULL;
    client_open(&fresh, &opt);
    sampling(&fresh);
    take(&fresh, &same, NULL, &want);
    client_close(&fresh);
    ck_assert_uint_eq(want.n_reused, 0);
    ck_assert_uint_eq(got->n_prompt, want.n_prompt);
    ck_assert_int_eq(got->stop, want.stop);
    for (size_t i = 0; i < CW_MAX_REPLIES; i++) {
        ck_assert_msg(got->n[i] == want.n[i], "%s: reply %zu has %zu tokens, not %zu", move, i,
                      got->n[i], want.n[i]);
        for (size_t k = 0; k < got->n[i]; k++) {
            ck_assert_msg(memcmp(&got->v[i][k], &want.v[i][k], sizeof got->v[i][k]) == 0,
                          "%s: token %zu of reply %zu is drawn otherwise (%d, %d from nothing)",
                          move, k, i, got->v[i][k].id, want.v[i][k].id);
        }
    }
    w->n_checked++;
}

/* Ask for the last reply of the path, as the program does; the others of n begin beside it. */
static void reply(struct walk *w, struct chat_message **to, size_t n, bool go_on,
                  const char *move) {
    static struct draws got;
    struct cw_buf scratch = {0};
    struct chat_message *m = to[0];
    const struct cw_tokenizer *tok = cw_generator_tokenizer(w->c.g);
    struct cw_request req = {.max_tokens = 1 + (int64_t)draw(w, 10),
                             .seed = (uint32_t)draw(w, 1000),
                             .detail = true,
                             .think = -1,
                             .continue_reply = go_on,
                             .n_replies = (uint32_t)n,
                             .snapshot_key = key};
    if (go_on) {
        const struct chat_run *last = m->n_runs > 0 ? &m->runs[m->n_runs - 1] : NULL;
        if (last != NULL) {
            req.first_position = last->position + (m->ids.n - last->first);
            req.seed = last->seed;
        }
        if (m->ids.n > 0 && cw_tokenizer_is_eog(tok, m->ids.v[m->ids.n - 1])) {
            m->ids.n--;
        }
    }
    struct cw_message *messages = chat_messages(&w->chat, NULL, &scratch, &req.n_messages);
    req.messages = messages;
    /* what the fresh one is asked must not grow with the reply */
    struct cw_message *copy = cw_calloc(req.n_messages, sizeof *copy);
    for (size_t i = 0; i < req.n_messages; i++) {
        copy[i] = messages[i];
        copy[i].content = cw_strndup(messages[i].content, messages[i].len);
        copy[i].ids = NULL;
        if (messages[i].n_ids > 0) {
            int32_t *ids = cw_reallocarray(NULL, messages[i].n_ids, sizeof *ids);
            memcpy(ids, messages[i].ids, messages[i].n_ids * sizeof *ids);
            copy[i].ids = ids;
        }
        copy[i].reasoning = NULL; /* these models do not think */
        copy[i].reasoning_len = 0;
    }
    req.messages = copy;
    struct cw_sampling s;
    cw_sampling_default(&s);
    for (size_t i = 0; i < n; i++) {
        chat_message_run(to[i], req.first_position, req.seed + (uint32_t)i, &s);
    }
    take(&w->c, &req, to, &got);
    for (size_t i = 0; i < n; i++) {
        to[i]->done = true;
        to[i]->stop = got.stop;
    }
    check_fresh(w, &req, &got, move);
    w->n_prompt += got.n_prompt;
    w->n_reused += got.n_reused;
    w->n_restored += got.n_restored;
    for (size_t i = 0; i < req.n_messages; i++) {
        free((void *)copy[i].content);
        free((void *)copy[i].ids);
    }
    free(copy);
    free(messages);
    cw_buf_free(&scratch);
    if (got.stop == CW_STOP_ERROR) {
        ck_assert_int_eq(got.code, CW_EFULL);
    }
    if (got.stop == CW_STOP_ERROR || got.stop == CW_STOP_CONTEXT) { /* the oldest turns leave */
        chat_mark(&w->chat);
        w->chat.window = w->chat.n >= 2 ? w->chat.messages[w->chat.n - 2] : NULL;
    }
    chat_mark(&w->chat);
}

static void ask(struct walk *w, bool typing) {
    struct chat *c = &w->chat;
    if (c->n > 0 && chat_last(c)->role == CHAT_USER) {
        chat_cut(c, c->n - 1);
    }
    chat_mark(c);
    struct chat_message *m = chat_add(c, CHAT_USER);
    words(w, &m->text, 1 + draw(w, draw(w, 4) == 0 ? 80 : 12));
    m->done = true;
    if (typing) { /* another text is typed, then this one */
        for (int i = 0; i < 2; i++) {
            struct cw_buf scratch = {0};
            struct cw_request draft = {.think = -1, .snapshot_key = key};
            struct cw_message *all =
                chat_messages_of(c, chat_window(c), c->n, NULL, &scratch, &draft.n_messages);
            if (i == 0) {
                all[draft.n_messages - 1].len /= 2;
            }
            draft.messages = all;
            cw_generator_prepare(w->c.g, &draft);
            cw_generator_count(w->c.g, "x", 1, 1); /* answered once it is evaluated, or not */
            free(all);
            cw_buf_free(&scratch);
        }
    }
    struct chat_message *r = chat_add(c, CHAT_REPLY);
    reply(w, &r, 1, false, "asking");
}

static bool last_is_reply(const struct walk *w) {
    return w->chat.n > 0 && chat_last(&w->chat)->role == CHAT_REPLY;
}

static void regenerate(struct walk *w, size_t n) {
    struct chat *c = &w->chat;
    struct chat_message *to[CW_MAX_REPLIES];
    size_t i = c->n - 1;
    chat_mark(c);
    for (size_t k = 0; k < n; k++) {
        to[k] = chat_add_sibling(c, i);
    }
    chat_go(c, to[0]);
    reply(w, to, n, false, n > 1 ? "several replies" : "regenerating");
    chat_go(c, to[draw(w, n)]);
    chat_mark(c);
}

static void edit(struct walk *w) {
    struct chat *c = &w->chat;
    size_t i = draw(w, c->n);
    chat_mark(c);
    struct chat_message *m = chat_add_sibling(c, i);
    words(w, &m->text, 1 + draw(w, 8));
    m->done = true;
    if (m->role == CHAT_USER) {
        struct chat_message *r = chat_add(c, CHAT_REPLY);
        reply(w, &r, 1, false, "editing a question");
        return;
    }
    m->typed = m->text.len;
    m->stop = CW_STOP_EOG;
    reply(w, &m, 1, true, "going on from an edited reply");
}

/* As the lens does: the same up to a token, another one there. */
static void alternative(struct walk *w) {
    struct chat *c = &w->chat;
    struct chat_message *from = chat_last(c);
    if (from->ids.n == 0 || from->typed > 0) {
        return;
    }
    size_t at = draw(w, from->ids.n);
    struct cw_draw d = from->tokens[at].draw;
    const struct cw_tokenizer *tok = cw_generator_tokenizer(w->c.g);
    if (d.n_alternatives == 0) {
        return;
    }
    d.id = d.alternatives[draw(w, (uint64_t)d.n_alternatives)].id;
    if (cw_tokenizer_is_control(tok, d.id)) {
        return;
    }
    chat_mark(c);
    struct chat_message *m = chat_add_sibling(c, c->n - 1);
    chat_message_copy_head(m, from, at);
    struct cw_buf whole = {0};
    chat_message_token(m, &d, false, "", 0);
    cw_tokenizer_decode(tok, m->ids.v, m->ids.n, false, &whole);
    cw_buf_clear(&m->text);
    cw_buf_add(&m->text, whole.data, whole.len);
    cw_buf_free(&whole);
    reply(w, &m, 1, true, "an alternative");
}

static void again_from_disk(struct walk *w) {
    client_close(&w->c);
    open_walk(w);
}

static void move(struct walk *w) {
    struct chat *c = &w->chat;
    uint64_t what = draw(w, 100);
    if (c->n == 0 || what < 20) {
        ask(w, draw(w, 3) == 0);
    } else if (what < 30 && last_is_reply(w)) {
        regenerate(w, 1);
    } else if (what < 36 && last_is_reply(w)) {
        regenerate(w, 2 + draw(w, 3));
    } else if (what < 46) {
        edit(w);
    } else if (what < 56 && last_is_reply(w)) {
        struct chat_message *m = chat_last(c);
        reply(w, &m, 1, true, "going on");
    } else if (what < 64 && last_is_reply(w)) {
        alternative(w);
    } else if (what < 72) {
        chat_undo(c);
    } else if (what < 78) {
        chat_redo(c);
    } else if (what < 88) {
        chat_mark(c);
        chat_select(c, draw(w, c->n), draw(w, 2) != 0 ? 1 : -1);
        chat_mark(c);
    } else if (what < 92) {
        chat_mark(c);
        c->window = draw(w, 2) != 0 ? c->messages[draw(w, c->n) / 2 * 2] : NULL;
        chat_mark(c);
    } else if (what < 96) {
        again_from_disk(w);
    } else if (what == 99) {
        chat_clear(c);
    }
}

START_TEST(same_as_from_nothing) {
    const char *wanted = getenv("CHINWAG_MOVES");
    int n = wanted != NULL ? atoi(wanted) : MOVES;
    struct walk w = {.model = models[_i], .r = 77 + (uint64_t)_i};
    snprintf(w.dir, sizeof w.dir, "%s.d", tmp_path("moves"));
    open_walk(&w);
    chat_init(&w.chat, 5);
    for (int i = 0; i < n; i++) {
        move(&w);
        if (i % 40 == 39 && w.chat.n > 0) {
            again_from_disk(&w);
            ask(&w, false);
        }
    }
    printf("%s: %zu replies of %d moves checked, %zu of %zu prompt tokens reused, %zu from disk\n",
           w.model, w.n_checked, n, w.n_reused, w.n_prompt, w.n_restored);
    ck_assert_uint_gt(w.n_checked, (size_t)n / 3);
    ck_assert_uint_gt(w.n_reused, w.n_prompt / 2);
    ck_assert_uint_gt(w.n_restored, 256);
    client_close(&w.c);
    chat_free(&w.chat);
    cw_snapshots_remove(w.dir, NULL, NULL);
    remove(w.dir);
}
END_TEST

int main(void) {
    Suite *s = suite_create("moves");
    TCase *c = tcase_create("moves");
    tcase_set_timeout(c, 1500);
    tcase_add_loop_test(c, same_as_from_nothing, 0, N_MODELS);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
