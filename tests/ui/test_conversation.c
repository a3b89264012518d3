/* SPDX-License-Identifier: MIT
 *
 * The conversation: what the generator is given of it, and what is remembered of a reply.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "app/chat.h"

static struct chat_message *say(struct chat *c, enum chat_role role, const char *text) {
    struct chat_message *m = chat_add(c, role);
    cw_buf_puts(&m->text, text);
    return m;
}

START_TEST(messages_for_the_generator) {
    struct chat c = {0};
    size_t n;
    struct cw_message *m = chat_messages(&c, NULL, &n);
    ck_assert_uint_eq(n, 0);
    free(m);
    say(&c, CHAT_USER, "question");
    struct chat_message *reply = say(&c, CHAT_REPLY, "answer");
    cw_ids_add(&reply->ids, 7);
    cw_ids_add(&reply->ids, 8);
    cw_buf_puts(&reply->reasoning, "because");
    say(&c, CHAT_USER, "more");
    chat_add(&c, CHAT_REPLY); /* the one that is asked for */
    m = chat_messages(&c, "be brief", &n);
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
    m = chat_messages(&c, "", &n);
    ck_assert_uint_eq(n, 4);
    ck_assert_str_eq(m[0].role, "user");
    ck_assert_str_eq(m[3].content, "half an ans");
    free(m);
    chat_free(&c);
}
END_TEST

START_TEST(raw_text_is_all_text) {
    struct chat c = {0};
    struct cw_buf out = {0};
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

START_TEST(changes_stand_at_their_place) {
    struct chat c = {0};
    struct cw_sampling from, to;
    struct cw_buf label = {0};
    memset(&from, 0, sizeof from);
    from.temp = 0.8f;
    from.top_p = 0.95f;
    to = from;
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

int main(void) {
    Suite *s = suite_create("conversation");
    TCase *t = tcase_create("conversation");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, messages_for_the_generator);
    tcase_add_test(t, raw_text_is_all_text);
    tcase_add_test(t, changes_stand_at_their_place);
    suite_add_tcase(s, t);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
