/* SPDX-License-Identifier: MIT
 *
 * The conversation: the tree and its path against a naive model of both, what the generator is
 * given of it, and what is remembered of a reply.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "app/chat.h"

static struct chat_message *say(struct chat *c, enum chat_role role, const char *text) {
    struct chat_message *m = chat_add(c, role);
    ck_assert_ptr_nonnull(m);
    cw_buf_puts(&m->text, text);
    return m;
}

/* A token of the reply with its text. */
static void token(struct chat_message *m, int32_t id, bool thinking, const char *text) {
    const struct cw_draw draw = {.id = id, .p = 0.5f, .p_raw = 0.25f};
    chat_message_token(m, &draw, thinking, text, strlen(text));
}

/* ---- for the generator ---------------------------------------------------------------------- */

START_TEST(messages_for_the_generator) {
    struct chat c;
    struct cw_buf scratch = {0};
    size_t n;
    chat_init(&c, 1);
    struct cw_message *m = chat_messages(&c, NULL, &scratch, &n);
    ck_assert_uint_eq(n, 0);
    free(m);
    say(&c, CHAT_USER, "question");
    struct chat_message *reply = chat_add(&c, CHAT_REPLY);
    token(reply, 7, false, "ans");
    token(reply, 8, false, "wer");
    cw_buf_puts(&reply->reasoning, "because");
    say(&c, CHAT_USER, "more");
    chat_add(&c, CHAT_REPLY); /* the one that is asked for */
    m = chat_messages(&c, "be brief", &scratch, &n);
    ck_assert_uint_eq(n, 4);
    ck_assert_str_eq(m[0].role, "system");
    ck_assert_str_eq(m[0].content, "be brief");
    ck_assert_str_eq(m[1].role, "user");
    ck_assert_str_eq(m[1].content, "question");
    ck_assert_ptr_null(m[1].ids);
    ck_assert_str_eq(m[2].role, "assistant");
    ck_assert_uint_eq(m[2].len, 6);
    ck_assert_uint_eq(m[2].n_ids, 2); /* as generated, never tokenised again */
    ck_assert_int_eq(m[2].ids[1], 8);
    ck_assert_str_eq(m[2].reasoning, "because");
    ck_assert_str_eq(m[3].content, "more");
    free(m);
    /* one to go on with is handed over */
    cw_buf_puts(&chat_last(&c)->text, "half an ans");
    m = chat_messages(&c, "", &scratch, &n);
    ck_assert_uint_eq(n, 4);
    ck_assert_str_eq(m[0].role, "user");
    ck_assert_str_eq(m[3].content, "half an ans");
    free(m);
    /* what a person wrote into a reply has no ids */
    reply->typed = 3;
    m = chat_messages(&c, NULL, &scratch, &n);
    ck_assert_ptr_null(m[1].ids);
    ck_assert_uint_eq(m[1].n_ids, 0);
    free(m);
    cw_buf_free(&scratch);
    chat_free(&c);
}
END_TEST

START_TEST(messages_from_the_window_on) {
    struct chat c;
    struct cw_buf scratch = {0};
    size_t n;
    chat_init(&c, 1);
    for (int i = 0; i < 3; i++) {
        say(&c, CHAT_USER, i == 0 ? "one" : i == 1 ? "two" : "three");
        say(&c, CHAT_REPLY, "reply");
    }
    ck_assert_uint_eq(chat_window(&c), 0);
    c.window = c.messages[2];
    cw_buf_puts(&c.window->summary, "they greeted");
    ck_assert_uint_eq(chat_window(&c), 2);
    struct cw_message *m = chat_messages(&c, "be brief", &scratch, &n);
    ck_assert_uint_eq(n, 5);
    ck_assert_str_eq(m[0].content, "be brief\n\nWhat was said before, in short: they greeted");
    ck_assert_str_eq(m[1].content, "two");
    free(m);
    m = chat_messages_of(&c, 0, 2, NULL, &scratch, &n); /* what leaves, without the summary */
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(m[0].content, "one");
    m[n++] = (struct cw_message){.role = "user"}; /* there is room for one more */
    free(m);
    /* another branch has lost nothing */
    chat_cut(&c, 2);
    ck_assert_uint_eq(chat_window(&c), 0);
    m = chat_messages(&c, NULL, &scratch, &n);
    ck_assert_uint_eq(n, 2);
    free(m);
    cw_buf_free(&scratch);
    chat_free(&c);
}
END_TEST

START_TEST(raw_text_is_all_text) {
    struct chat c;
    struct cw_buf out = {0};
    chat_init(&c, 1);
    say(&c, CHAT_USER, "once");
    say(&c, CHAT_REPLY, " upon");
    say(&c, CHAT_USER, "");
    say(&c, CHAT_REPLY, " a time");
    chat_raw(&c, &out);
    ck_assert_str_eq(out.data, "once upon a time");
    cw_buf_free(&out);
    chat_drop_last(&c);
    ck_assert_uint_eq(c.n, 3);
    chat_clear(&c);
    chat_drop_last(&c); /* nothing there */
    ck_assert_ptr_null(chat_last(&c));
    chat_free(&c);
}
END_TEST

/* ---- a reply -------------------------------------------------------------------------------- */

START_TEST(changes_stand_at_their_place) {
    struct chat c;
    struct cw_sampling from, to;
    struct cw_buf label = {0};
    chat_init(&c, 1);
    memset(&from, 0, sizeof from);
    from.temp = 0.8f;
    from.top_p = 0.95f;
    to = from;
    say(&c, CHAT_USER, "q");
    struct chat_message *m = say(&c, CHAT_REPLY, "abc");
    to.temp = 0.95f;
    chat_message_change(m, 3, &from, &to);
    ck_assert_uint_eq(m->n_changes, 1);
    ck_assert_uint_eq(m->changes[0].token, 3);
    ck_assert_uint_eq(m->changes[0].offset, 3);
    chat_change_label(&from, &to, &label);
    ck_assert_str_eq(label.data, "T 0.80 -> 0.95");
    cw_buf_clear(&label);
    to.top_p = 0.9f;
    to.top_k = 40;
    chat_change_label(&from, &to, &label);
    ck_assert_str_eq(label.data, "T 0.80 -> 0.95, top-p 0.95 -> 0.90, top-k 0 -> 40");
    cw_buf_clear(&label);
    chat_change_label(&to, &to, &label);
    ck_assert_uint_eq(label.len, 0);
    to = from;
    to.dry_base = 2;
    chat_change_label(&from, &to, &label); /* one without a word of its own */
    ck_assert_str_eq(label.data, "settings changed");
    cw_buf_free(&label);
    chat_free(&c);
}
END_TEST

START_TEST(tokens_know_their_text) {
    struct chat c;
    chat_init(&c, 1);
    say(&c, CHAT_USER, "q");
    struct chat_message *m = chat_add(&c, CHAT_REPLY);
    token(m, 1, false, ""); /* the marker that thinking begins with */
    token(m, 2, true, "hm");
    chat_message_more(m, true, "m", 1);
    token(m, 3, true, "");
    token(m, 4, false, "yes");
    token(m, 5, false, " sir");
    ck_assert_uint_eq(m->ids.n, 5);
    ck_assert(m->tokens[0].thinking && m->tokens[1].thinking && m->tokens[2].thinking);
    ck_assert(!m->tokens[3].thinking && !m->tokens[4].thinking);
    ck_assert_uint_eq(m->tokens[2].reasoning_at, 3);
    ck_assert_uint_eq(m->tokens[4].text_at, 3);
    ck_assert_str_eq(m->text.data, "yes sir");
    ck_assert_str_eq(m->reasoning.data, "hmm");

    struct cw_sampling s, t;
    memset(&s, 0, sizeof s);
    memset(&t, 0, sizeof t);
    s.temp = 1;
    t.temp = 2;
    ck_assert_ptr_null(chat_message_sampling(m));
    chat_message_run(m, 0, 9, &s); /* drew nothing: replaced by the next */
    chat_message_run(m, 5, 10, &s);
    ck_assert_uint_eq(m->n_runs, 1);
    ck_assert_uint_eq(m->runs[0].first, 5);
    ck_assert_uint_eq(m->seed, 10);
    chat_message_change(m, 5, &s, &t);
    ck_assert(chat_message_sampling(m)->temp > 1.5f);

    struct chat_message *half = chat_add_sibling(&c, 1);
    chat_message_copy_head(half, m, 4);
    ck_assert_uint_eq(half->ids.n, 4);
    ck_assert_str_eq(half->text.data, "yes");
    ck_assert_str_eq(half->reasoning.data, "hmm");
    ck_assert_uint_eq(half->n_changes, 0);
    ck_assert_uint_eq(half->n_runs, 0);
    token(half, 50, false, " madam"); /* grows on its own */
    ck_assert_str_eq(half->text.data, "yes madam");
    ck_assert_int_eq(half->tokens[4].draw.id, 50);
    ck_assert_int_eq(m->ids.v[4], 5);
    chat_free(&c);
}
END_TEST

/* ---- the tree ------------------------------------------------------------------------------- */

START_TEST(roles_alternate) {
    struct chat c;
    chat_init(&c, 1);
    ck_assert_ptr_null(chat_add(&c, CHAT_REPLY)); /* a conversation begins with the person */
    say(&c, CHAT_USER, "q");
    ck_assert_ptr_null(chat_add(&c, CHAT_USER));
    say(&c, CHAT_REPLY, "a");
    ck_assert_ptr_null(chat_add(&c, CHAT_REPLY));
    ck_assert_uint_eq(c.n, 2);
    ck_assert_uint_eq(c.n_all, 2);
    ck_assert_int_eq(chat_add_sibling(&c, 1)->role, CHAT_REPLY);
    ck_assert_int_eq(chat_add_sibling(&c, 0)->role, CHAT_USER);
    ck_assert_uint_eq(c.n, 1);
    chat_free(&c);
}
END_TEST

START_TEST(branches_are_remembered) {
    struct chat c;
    size_t n;
    chat_init(&c, 1);
    say(&c, CHAT_USER, "q");
    struct chat_message *a = say(&c, CHAT_REPLY, "a");
    say(&c, CHAT_USER, "q2");
    struct chat_message *deep = say(&c, CHAT_REPLY, "a2");
    struct chat_message *b = chat_add_sibling(&c, 1);
    ck_assert_uint_eq(c.n, 2);
    ck_assert_uint_eq(chat_sibling(&c, b, &n), 1);
    ck_assert_uint_eq(n, 2);
    ck_assert(!chat_select(&c, 1, 1));
    ck_assert(chat_select(&c, 1, -1)); /* back to where that branch was left */
    ck_assert_ptr_eq(chat_last(&c), deep);
    ck_assert_ptr_eq(c.messages[1], a);
    ck_assert(!chat_select(&c, 1, -1));
    ck_assert(!chat_select(&c, 1, -2));
    ck_assert_ptr_eq(chat_find(&c, deep->id), deep);
    ck_assert_ptr_null(chat_find(&c, 12345));
    chat_remove(&c, a);
    ck_assert_uint_eq(c.n, 1);
    ck_assert_uint_eq(c.n_all, 2);
    chat_go_deep(&c, c.messages[0]);
    ck_assert_ptr_eq(chat_last(&c), b);
    chat_free(&c);
}
END_TEST

START_TEST(a_fork_is_a_copy) {
    struct chat c, f;
    chat_init(&c, 1);
    struct chat_message *q = say(&c, CHAT_USER, "q");
    q->done = true;
    struct chat_message *r = chat_add(&c, CHAT_REPLY);
    token(r, 3, false, "abc");
    r->done = true;
    r->stop = CW_STOP_LENGTH;
    say(&c, CHAT_USER, "q2");
    say(&c, CHAT_REPLY, "a2");
    c.window = c.messages[2];
    c.messages[3]->window = c.window;
    chat_add_sibling(&c, 3); /* stays behind */
    chat_select(&c, 3, -1);
    chat_fork(&c, &f, 2);
    ck_assert_uint_eq(f.n, 4);
    ck_assert_uint_eq(f.n_all, 4);
    ck_assert_uint_eq(f.parent_id, c.id);
    ck_assert(f.id != c.id && f.messages[1]->id != r->id);
    ck_assert_str_eq(f.messages[1]->text.data, "abc");
    ck_assert_int_eq(f.messages[1]->ids.v[0], 3);
    ck_assert(f.messages[1]->done && f.messages[1]->stop == CW_STOP_LENGTH);
    ck_assert_ptr_eq(f.window, f.messages[2]);
    ck_assert_ptr_eq(f.messages[3]->window, f.messages[2]);
    ck_assert(!chat_undo(&f)); /* it begins here */
    cw_buf_puts(&f.messages[1]->text, "d");
    ck_assert_str_eq(r->text.data, "abc");
    chat_free(&f);
    chat_free(&c);
}
END_TEST

/* ---- a naive model: nodes by number, the path and every place written out ------------------- */

enum { MAX_NODES = 600, MAX_PLACES = 3000, MAX_DEPTH = 200 };

struct naive {
    struct {
        struct chat_message *m;
        int parent; /* -1: a first message */
        int role;
        int chosen;
        bool gone;
    } nodes[MAX_NODES];
    int n;
    int first_chosen;
    int leaf, window;
    struct {
        int leaf, window;
    } places[MAX_PLACES];
    int n_places, at;
};

static struct naive nv;
static uint32_t state;

static uint32_t rnd(uint32_t n) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}

static int depth_of(int leaf) {
    int n = 0;
    for (; leaf >= 0; leaf = nv.nodes[leaf].parent) {
        n++;
    }
    return n;
}

static int on_path(int i) { /* node at index i of the path */
    int node = nv.leaf;
    for (int up = depth_of(nv.leaf) - 1; up > i; up--) {
        node = nv.nodes[node].parent;
    }
    return node;
}

static void walk_to(int leaf) {
    nv.leaf = leaf;
    for (int node = leaf; node >= 0; node = nv.nodes[node].parent) {
        int parent = nv.nodes[node].parent;
        if (parent >= 0) {
            nv.nodes[parent].chosen = node;
        } else {
            nv.first_chosen = node;
        }
    }
}

static int deep(int node) {
    while (nv.nodes[node].chosen >= 0) {
        node = nv.nodes[node].chosen;
    }
    return node;
}

static int add_node(struct chat_message *m, int parent, int role) {
    nv.nodes[nv.n].m = m;
    nv.nodes[nv.n].parent = parent;
    nv.nodes[nv.n].role = role;
    nv.nodes[nv.n].chosen = -1;
    nv.nodes[nv.n].gone = false;
    return nv.n++;
}

static void mark(void) {
    if (nv.n_places == 0) {
        nv.places[0].leaf = nv.places[0].window = -1;
        nv.n_places = 1;
        nv.at = 0;
    }
    if (nv.places[nv.at].leaf != nv.leaf || nv.places[nv.at].window != nv.window) {
        nv.at++;
        nv.places[nv.at].leaf = nv.leaf;
        nv.places[nv.at].window = nv.window;
        nv.n_places = nv.at + 1;
    }
}

static void go_place(int to) {
    nv.at = to;
    nv.window = nv.places[to].window;
    walk_to(nv.places[to].leaf);
}

static bool below(int node, int top) {
    for (; node >= 0; node = nv.nodes[node].parent) {
        if (node == top) {
            return true;
        }
    }
    return false;
}

static int siblings(int node, int *index) {
    int n = 0;
    for (int i = 0; i < nv.n; i++) {
        if (!nv.nodes[i].gone && nv.nodes[i].parent == nv.nodes[node].parent) {
            if (i == node) {
                *index = n;
            }
            n++;
        }
    }
    return n;
}

static int sibling_at(int node, int index) {
    for (int i = 0, n = 0; i < nv.n; i++) {
        if (!nv.nodes[i].gone && nv.nodes[i].parent == nv.nodes[node].parent && n++ == index) {
            return i;
        }
    }
    return -1;
}

static void compare(const struct chat *c) {
    int depth = depth_of(nv.leaf);
    ck_assert_uint_eq(c->n, (size_t)depth);
    int alive = 0;
    for (int i = 0; i < depth; i++) {
        int node = on_path(i);
        size_t n;
        int index = -1;
        int count = siblings(node, &index);
        ck_assert_ptr_eq(c->messages[i], nv.nodes[node].m);
        ck_assert_int_eq(c->messages[i]->role, i % 2 == 0 ? CHAT_USER : CHAT_REPLY);
        ck_assert_uint_eq(chat_sibling(c, c->messages[i], &n), (size_t)index);
        ck_assert_uint_eq(n, (size_t)count);
    }
    for (int i = 0; i < nv.n; i++) {
        alive += !nv.nodes[i].gone;
    }
    ck_assert_uint_eq(c->n_all, (size_t)alive);
    struct chat_message *window = nv.window >= 0 ? nv.nodes[nv.window].m : NULL;
    ck_assert_ptr_eq(c->window, window);
    ck_assert_uint_eq(chat_window(c), nv.window >= 0 && below(nv.leaf, nv.window)
                                          ? (size_t)depth_of(nv.window) - 1
                                          : 0);
}

static void forget(int top) {
    int kept = 0, at = 0;
    for (int i = 0; i < nv.n_places; i++) {
        int leaf = nv.places[i].leaf;
        int window = nv.places[i].window;
        if (window >= 0 && below(window, top)) {
            window = -1;
        }
        bool same =
            kept > 0 && nv.places[kept - 1].leaf == leaf && nv.places[kept - 1].window == window;
        if (!(leaf >= 0 && below(leaf, top)) && !same) {
            nv.places[kept].leaf = leaf;
            nv.places[kept++].window = window;
        }
        if (i == nv.at) {
            at = kept > 0 ? kept - 1 : 0;
        }
    }
    nv.n_places = kept;
    nv.at = at;
}

START_TEST(random_moves_as_a_naive_model) {
    struct chat c;
    chat_init(&c, 7);
    memset(&nv, 0, sizeof nv);
    nv.leaf = nv.window = nv.first_chosen = -1;
    state = 1234567u + (uint32_t)_i;
    int done[10] = {0};
    for (int step = 0; step < 1000 && nv.n < MAX_NODES - 3; step++) {
        int depth = depth_of(nv.leaf);
        uint32_t what = rnd(10);
        switch (what) {
        case 0: /* ask */
            if (depth < MAX_DEPTH && depth % 2 == 0) {
                chat_mark(&c);
                mark();
                walk_to(add_node(chat_add(&c, CHAT_USER), nv.leaf, CHAT_USER));
                walk_to(add_node(chat_add(&c, CHAT_REPLY), nv.leaf, CHAT_REPLY));
                done[what]++;
            }
            break;
        case 1: /* another reply, or another wording */
            if (depth > 0) {
                int i = (int)rnd((uint32_t)depth);
                int node = on_path(i);
                int parent = nv.nodes[node].parent;
                walk_to(add_node(chat_add_sibling(&c, (size_t)i), parent, nv.nodes[node].role));
                if (i % 2 == 0) {
                    walk_to(add_node(chat_add(&c, CHAT_REPLY), nv.leaf, CHAT_REPLY));
                }
                done[what]++;
            }
            break;
        case 2: /* beside */
        case 3:
            if (depth > 0) {
                int i = (int)rnd((uint32_t)depth);
                int index = 0, n = siblings(on_path(i), &index);
                int to = index + (what == 2 ? -1 : 1);
                bool possible = to >= 0 && to < n;
                ck_assert_int_eq(chat_select(&c, (size_t)i, what == 2 ? -1 : 1), possible);
                if (possible) {
                    walk_to(deep(sibling_at(on_path(i), to)));
                    done[what]++;
                }
            }
            break;
        case 4:
            ck_assert_int_eq(chat_undo(&c), nv.n_places > 0 && nv.at > 0);
            if (nv.n_places > 0 && nv.at > 0) {
                go_place(nv.at - 1);
                done[what]++;
            }
            break;
        case 5:
            ck_assert_int_eq(chat_redo(&c), nv.at + 1 < nv.n_places);
            if (nv.at + 1 < nv.n_places) {
                go_place(nv.at + 1);
                done[what]++;
            }
            break;
        case 6: /* whole turns are cut off */
            if (depth > 1) {
                int keep = 2 * (int)rnd((uint32_t)depth / 2 + 1);
                chat_cut(&c, (size_t)keep);
                while (depth_of(nv.leaf) > keep) {
                    nv.leaf = nv.nodes[nv.leaf].parent;
                }
                done[what]++;
            }
            break;
        case 7: /* somewhere else */
            if (nv.n > 0) {
                int node = (int)rnd((uint32_t)nv.n);
                if (!nv.nodes[node].gone && nv.nodes[node].role == CHAT_REPLY) {
                    chat_go(&c, nv.nodes[node].m);
                    walk_to(node);
                    done[what]++;
                }
            }
            break;
        case 8: /* a window moves */
            if (depth > 0) {
                int i = (int)rnd((uint32_t)depth);
                nv.window = on_path(i);
                c.window = c.messages[i];
                done[what]++;
            }
            break;
        default: /* out of the tree, now and then */
            if (depth > 0 && rnd(4) == 0) {
                int i = depth - 1 - (int)rnd(depth > 4 ? 4 : (uint32_t)depth);
                int node = on_path(i);
                int parent = nv.nodes[node].parent;
                forget(node);
                chat_remove(&c, nv.nodes[node].m);
                if (nv.window >= 0 && below(nv.window, node)) {
                    nv.window = -1;
                }
                int index = 0, n = siblings(node, &index);
                int next = sibling_at(node, n - 1 == index ? n - 2 : n - 1);
                int *chosen = parent >= 0 ? &nv.nodes[parent].chosen : &nv.first_chosen;
                *chosen = n > 1 ? next : -1;
                nv.leaf = parent;
                for (int k = nv.n - 1; k >= 0; k--) {
                    nv.nodes[k].gone = nv.nodes[k].gone || below(k, node);
                }
                if (i % 2 != 0) { /* a question alone is not left */
                    break;
                }
                done[what]++;
            }
            break;
        }
        if (depth_of(nv.leaf) % 2 != 0) {
            /* after a removal the path may end in a question: answer it */
            walk_to(add_node(chat_add(&c, CHAT_REPLY), nv.leaf, CHAT_REPLY));
        }
        if (rnd(3) != 0) {
            chat_mark(&c);
            mark();
        }
        compare(&c);
    }
    for (int i = 0; i < 10; i++) {
        ck_assert_msg(done[i] > 0, "move %d never happened", i);
    }
    chat_free(&c);
}
END_TEST

int main(void) {
    Suite *s = suite_create("conversation");
    TCase *t = tcase_create("conversation");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, messages_for_the_generator);
    tcase_add_test(t, messages_from_the_window_on);
    tcase_add_test(t, raw_text_is_all_text);
    tcase_add_test(t, changes_stand_at_their_place);
    tcase_add_test(t, tokens_know_their_text);
    tcase_add_test(t, roles_alternate);
    tcase_add_test(t, branches_are_remembered);
    tcase_add_test(t, a_fork_is_a_copy);
    tcase_add_loop_test(t, random_moves_as_a_naive_model, 0, 20);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
