/* SPDX-License-Identifier: MIT
 *
 * What holds for every row: each pre-tokenizer's name, each end marker, each key of a vocabulary
 * in each type it should not have. The tables here were written from the families' own files, not
 * from those of the program, and a row that only one side has fails.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tok_check.h"

/* --- pre-tokenizers --- */

enum { WHOLE = PRE_IGNORE_MERGES, BEGIN = PRE_ADD_BOS };

/* Every name a file may give: one that cuts the same and stands for all that do, and what comes
 * with the name. What each family cuts where is tested with the patterns. */
static const struct {
    const char *name, *family;
    unsigned flags;
} names[] = {
    {"default", "default", 0},
    {"gpt-2", "gpt-2", 0},
    {"phi-2", "gpt-2", 0},
    {"mpt", "gpt-2", 0},
    {"olmo", "gpt-2", 0},
    {"jais", "gpt-2", 0},
    {"jina-es", "gpt-2", 0},
    {"jina-de", "gpt-2", 0},
    {"jina-v1-en", "gpt-2", 0},
    {"jina-v2-es", "gpt-2", 0},
    {"jina-v2-de", "gpt-2", 0},
    {"jina-v2-code", "gpt-2", 0},
    {"roberta-bpe", "gpt-2", 0},
    {"modern-bert", "gpt-2", 0},
    {"gigachat", "gpt-2", 0},
    {"a.x-4.0", "gpt-2", 0},
    {"mellum", "gpt-2", 0},
    {"exaone4", "gpt-2", 0},
    {"trillion", "gpt-2", 0},
    {"granite-docling", "gpt-2", 0},
    {"smollm", "smollm", 0},
    {"starcoder", "smollm", 0},
    {"refact", "smollm", 0},
    {"command-r", "smollm", 0},
    {"codeshell", "smollm", 0},
    {"exaone", "smollm", 0},
    {"minerva-7b", "smollm", 0},
    {"mellum2", "smollm", 0},
    {"llama-bpe", "llama-bpe", WHOLE | BEGIN},
    {"llama3", "llama-bpe", WHOLE | BEGIN},
    {"llama-v3", "llama-bpe", WHOLE | BEGIN},
    {"falcon3", "llama-bpe", WHOLE | BEGIN},
    {"falcon-h1", "llama-bpe", WHOLE | BEGIN},
    {"pixtral", "llama-bpe", WHOLE | BEGIN},
    {"midm-2.0", "llama-bpe", WHOLE | BEGIN},
    {"lfm2", "llama-bpe", WHOLE | BEGIN},
    {"jina-v5-nano", "llama-bpe", WHOLE | BEGIN},
    {"glm4", "llama-bpe", WHOLE},
    {"glm5", "llama-bpe", WHOLE},
    {"dbrx", "llama-bpe", 0},
    {"smaug-bpe", "llama-bpe", 0},
    {"chatglm-bpe", "llama-bpe", 0},
    {"minicpm5", "minicpm5", WHOLE},
    {"qwen2", "qwen2", 0},
    {"deepseek-r1-qwen", "qwen2", 0},
    {"stablelm2", "qwen2", 0},
    {"megrez", "qwen2", 0},
    {"kormo", "qwen2", 0},
    {"f2llmv2", "qwen2", 0},
    {"hunyuan", "qwen2", 0},
    {"solar-open", "qwen2", 0},
    {"grok-2", "qwen2", 0},
    {"ufakzeka", "ufakzeka", 0},
    {"qwen35", "qwen35", 0},
    {"deepseek-llm", "deepseek-llm", 0},
    {"deepseek-coder", "deepseek-coder", 0},
    {"deepseek-v3", "deepseek-v3", 0},
    {"hunyuan-dense", "deepseek-v3", 0},
    {"joyai-llm", "deepseek-v3", 0},
    {"hy_v4", "deepseek-v3", 0},
    {"falcon", "falcon", 0},
    {"tekken", "tekken", WHOLE | BEGIN},
    {"gpt-4o", "gpt-4o", 0},
    {"llama4", "gpt-4o", 0},
    {"kanana2", "gpt-4o", 0},
    {"minimax-m2", "gpt-4o", 0},
    {"talkie", "gpt-4o", 0},
    {"granite-embed-multi-97m", "gpt-4o", WHOLE},
    {"bloom", "bloom", 0},
    {"gpt3-finnish", "bloom", 0},
    {"poro-chat", "bloom", 0},
    {"viking", "viking", 0},
    {"bailingmoe", "bailingmoe", 0},
    {"bailingmoe2", "bailingmoe", 0},
    {"llada-moe", "bailingmoe", 0},
    {"seed-coder", "seed-coder", 0},
    {"gemma4", "gemma4", PRE_TEXT | BEGIN},
    {"granite-embed-multi-311m", "gemma4", PRE_TEXT | BEGIN},
};
enum { N_NAMES = sizeof names / sizeof *names };

static const struct cw_pre *pre_named(const char *name) {
    return cw_pre_find((struct cw_str){name, strlen(name)});
}

START_TEST(every_name_is_of_its_family) {
    for (size_t i = 0; i < N_NAMES; i++) {
        const struct cw_pre *pre = pre_named(names[i].name);
        ck_assert_msg(pre != NULL, "%s is not known", names[i].name);
        ck_assert_msg(pre->flags == names[i].flags, "%s comes with %x", names[i].name, pre->flags);
        for (size_t k = 0; k <= i; k++) { /* no two families are one */
            ck_assert_msg((strcmp(names[i].family, names[k].family) == 0) ==
                              (pre->patterns == pre_named(names[k].name)->patterns),
                          "%s and %s", names[i].name, names[k].name);
        }
    }
    const struct cw_pre *pre;
    size_t n = 0;
    for (; (pre = cw_pre_at(n)) != NULL; n++) {
        bool found = false;
        for (size_t k = 0; k < N_NAMES; k++) {
            found = found || strcmp(names[k].name, pre->name) == 0;
        }
        ck_assert_msg(found, "%s is not in this table", pre->name);
    }
    ck_assert_uint_eq(n, N_NAMES);
}
END_TEST

/* What comes with a name takes hold, and the file's own word goes before it. */
START_TEST(every_name_by_what_comes_with_it) {
    for (int said = 0; said < 3; said++) { /* nothing, false, true */
        struct tiny_vocab v;
        bool text = (names[_i].flags & PRE_TEXT) != 0;
        tiny_vocab_init(&v, "gpt2", names[_i].name);
        tiny_vocab_add_alphabet(&v);
        tiny_vocab_merge(&v, "x", "y");
        tiny_vocab_add(&v, "xyz", NORMAL, 0); /* no merge reaches it */
        int32_t begin = tiny_vocab_add(&v, "<begin>", CONTROL, 0);
        mkgguf_u32(&v.m, "tokenizer.ggml.bos_token_id", (uint32_t)begin);
        if (said > 0) {
            mkgguf_bool(&v.m, "tokenizer.ggml.add_bos_token", said == 2);
        }
        struct tiny tiny = tiny_open(&v);
        /* The files of the kind that is text say false wrongly. */
        bool adds = said == 0 ? (names[_i].flags & BEGIN) != 0 : said == 2 || text;
        ck_assert_msg(cw_tokenizer_adds_bos(tiny.t) == adds, "%s, %d", names[_i].name, said);
        const char *word = names[_i].flags & WHOLE ? "xyz" : "xy|z";
        char want[32];
        snprintf(want, sizeof want, "%s%s", adds ? "<begin>|" : "", word);
        check_tokens(tiny.t, "xyz", CW_TOK_BOS_EOS, want);
        check_tokens(tiny.t, "xyz", 0, word);
        ck_assert_str_eq(cw_tokenizer_pre_name(tiny.t), names[_i].name);
        ck_assert_ptr_null(cw_tokenizer_notice(tiny.t, 0));
        tiny_close(&tiny);
    }
}
END_TEST

/* --- end markers --- */

/* What ends a turn in some family. */
static const char *const enders[] = {
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<end_of_turn>",
    "<turn|>",
    "<|tool_response>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|END_OF_TURN_TOKEN|>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
    "<end_of_utterance>",
    "</s>",
    "<eos>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|eot|>",
    "<|EOT|>",
    "<|end_of_turn|>",
    "<|endofturn|>",
    "[|endofturn|]",
    "[e~[",
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
};
enum { N_ENDERS = sizeof enders / sizeof *enders };

static bool ends(const struct tiny *tiny, const char *s) {
    return cw_tokenizer_is_eog(tiny->t, cw_tokenizer_find(tiny->t, s, strlen(s)));
}

/* Bytes of either kind of vocabulary, and one control token that ends nothing. */
static void bytes_alone(struct tiny_vocab *v, bool spm) {
    tiny_vocab_init(v, spm ? "llama" : "gpt2", spm ? NULL : "gpt-2");
    if (spm) {
        mkgguf_bool(&v->m, "tokenizer.ggml.add_bos_token", false);
        mkgguf_bool(&v->m, "tokenizer.ggml.add_space_prefix", false);
        tiny_vocab_add_byte_tokens(v);
    } else {
        tiny_vocab_add_alphabet(v);
    }
    tiny_vocab_add(v, "<|other|>", CONTROL, 0);
}

/* Each of them, whatever its type in the file and whatever kind of vocabulary: a control token ends
 * the reply; another does where the chat template writes it, and can then not be typed; else it is
 * text. */
START_TEST(every_end_marker) {
    static const int32_t types[] = {CONTROL, NORMAL, USER};
    const char *marker = enders[_i];
    for (int way = 0; way < 12; way++) {
        struct tiny_vocab v;
        struct cw_buf chat = {0};
        struct cw_ids ids = {0};
        int32_t type = types[way / 4];
        bool written = way % 2 != 0, ender = type == CONTROL || written;
        cw_buf_printf(&chat, "{{ m.content }}%s", written ? marker : "");
        bytes_alone(&v, way / 2 % 2 != 0);
        int32_t id = tiny_vocab_add(&v, marker, type, 0);
        mkgguf_str(&v.m, "tokenizer.chat_template", chat.data);
        struct tiny tiny = tiny_open(&v);
        ck_assert_msg(cw_tokenizer_is_eog(tiny.t, id) == ender, "%s, type %d, written %d", marker,
                      type, written);
        ck_assert_int_eq(cw_tokenizer_is_control(tiny.t, id), ender);
        ck_assert(!ends(&tiny, "<|other|>"));
        encode_n(tiny.t, marker, strlen(marker), 0, &ids);
        ck_assert_int_eq(ids.n == 1 && ids.v[0] == id, !ender && type == USER);
        encode_n(tiny.t, marker, strlen(marker), CW_TOK_SPECIAL, &ids);
        ck_assert_msg(ids.n == 1 && ids.v[0] == id, "%s, type %d: %s", marker, type,
                      show(tiny.t, &ids));
        cw_ids_free(&ids);
        cw_buf_free(&chat);
        tiny_close(&tiny);
    }
}
END_TEST

/* Both families whose messages have channels: <|end|> ends one of them and not the turn. */
START_TEST(channels_are_parted_by_end) {
    static const char *const pairs[][2] = {{"<|return|>", "<|call|>"}, {"<|flush|>", "<|calls|>"}};
    for (int way = 0; way < 8; way++) {
        const char *const *pair = pairs[way / 4];
        bool both = way % 2 != 0, control = way / 2 % 2 != 0;
        struct tiny_vocab v;
        bytes_alone(&v, false);
        tiny_vocab_add(&v, "<|end|>", CONTROL, 0);
        tiny_vocab_add(&v, pair[0], CONTROL, 0);
        if (both) {
            tiny_vocab_add(&v, pair[1], control ? CONTROL : NORMAL, 0);
        }
        struct tiny tiny = tiny_open(&v);
        ck_assert_int_eq(ends(&tiny, "<|end|>"), !(both && control));
        ck_assert(ends(&tiny, pair[0]));
        tiny_close(&tiny);
    }
}
END_TEST

/* --- keys --- */

static const char *const ids[] = {
    "tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id", "tokenizer.ggml.unknown_token_id",
    "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id",
};
static const char *const switches[] = {
    "tokenizer.ggml.add_bos_token",
    "tokenizer.ggml.add_eos_token",
    "tokenizer.ggml.add_space_prefix",
};
static const char *const texts[] = {"tokenizer.ggml.model", "tokenizer.ggml.pre",
                                    "tokenizer.chat_template"};
static const char *const lists[] = {"tokenizer.ggml.tokens", "tokenizer.ggml.scores",
                                    "tokenizer.ggml.token_type", "tokenizer.ggml.merges"};

#define N(a) (sizeof(a) / sizeof((a)[0]))

/* Of one value; 0 for strings and arrays. */
static size_t kind_bytes(uint32_t kind) {
    static const uint8_t bytes[CW_GGUF_N_KINDS] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return bytes[kind];
}

/* Creation fails with the key's name. */
static void check_refused(struct tiny_vocab *v, const char *key, const char *what, unsigned kind) {
    struct cw_gguf *g;
    struct cw_tokenizer *t;
    struct cw_err err = {0};
    int rc = tiny_vocab_try(v, NULL, &g, &t, &err);
    ck_assert_msg(rc == CW_EFORMAT && strstr(err.text, key) != NULL, "%s as %s %u: %d, %s", key,
                  what, kind, rc, err.text);
    tiny_vocab_free(v);
}

/* A vocabulary without this key. */
static void vocab_without(struct tiny_vocab *v, bool spm, const char *key) {
    bytes_alone(v, spm);
    v->no_tokens = strcmp(key, lists[0]) == 0;
    v->no_scores = !spm || strcmp(key, lists[1]) == 0;
    v->no_types = strcmp(key, lists[2]) == 0;
    v->no_merges = spm || strcmp(key, lists[3]) == 0;
}

START_TEST(every_key_of_another_type) {
    static const uint8_t zeros[64];
    for (uint32_t kind = 0; kind < CW_GGUF_N_KINDS; kind++) {
        bool whole = kind <= CW_GGUF_I32 || kind == CW_GGUF_U64 || kind == CW_GGUF_I64;
        struct tiny_vocab v;
        size_t fixed = kind_bytes(kind);
        /* Else an empty string, or an empty array of bytes. */
        size_t bytes = fixed != 0 ? fixed : kind == CW_GGUF_STRING ? 8 : 12;
        for (size_t i = 0; i < N(ids) && !whole; i++) {
            bytes_alone(&v, false);
            mkgguf_scalar(&v.m, ids[i], kind, zeros, bytes);
            check_refused(&v, ids[i], "type", kind);
        }
        for (size_t i = 0; i < N(switches) && kind != CW_GGUF_BOOL; i++) {
            tiny_vocab_init(&v, "llama", NULL);
            tiny_vocab_add_byte_tokens(&v);
            mkgguf_scalar(&v.m, switches[i], kind, zeros, bytes);
            check_refused(&v, switches[i], "type", kind);
        }
        for (size_t i = 0; i < N(texts) && kind != CW_GGUF_STRING; i++) {
            tiny_vocab_init(&v, i == 0 ? NULL : "gpt2", i < 2 ? NULL : "gpt-2");
            tiny_vocab_add_alphabet(&v);
            mkgguf_scalar(&v.m, texts[i], kind, zeros, bytes);
            check_refused(&v, texts[i], "type", kind);
        }
        for (size_t i = 0; i < N(lists) && kind != CW_GGUF_ARRAY; i++) {
            vocab_without(&v, i < 2, lists[i]);
            mkgguf_scalar(&v.m, lists[i], kind, zeros, bytes);
            check_refused(&v, lists[i], "type", kind);
        }
    }
}
END_TEST

/* Lists of every element type: what is no text, no number or no whole number is refused; of numbers
 * any width will do, if there are as many as tokens. */
START_TEST(every_list_of_another_type) {
    static const uint8_t zeros[512 * 8];
    for (uint32_t elem = 0; elem < CW_GGUF_N_KINDS; elem++) {
        size_t bytes = kind_bytes(elem);
        bool whole = elem <= CW_GGUF_I32 || elem == CW_GGUF_U64 || elem == CW_GGUF_I64;
        bool number = whole || elem == CW_GGUF_F32 || elem == CW_GGUF_F64;
        for (size_t i = 0; i < N(lists) && elem != CW_GGUF_ARRAY; i++) {
            for (uint64_t n = 256; n <= 258; n++) { /* tokens: 257 */
                struct tiny_vocab v;
                struct cw_gguf *g;
                struct cw_tokenizer *t;
                bool spm = i < 2;
                bool fits = i == 1 ? number && n > 256
                                   : i == 2 && (whole || elem == CW_GGUF_BOOL) && n > 256;
                if (elem == CW_GGUF_STRING && (i == 0 || i == 3)) {
                    continue;
                }
                vocab_without(&v, spm, lists[i]);
                mkgguf_array(&v.m, lists[i], elem, n, zeros, (size_t)n * (bytes ? bytes : 8));
                if (!fits) {
                    check_refused(&v, lists[i], "list of type", elem);
                    continue;
                }
                ck_assert_int_eq(tiny_vocab_try(&v, NULL, &g, &t, NULL), CW_OK);
                cw_tokenizer_destroy(t);
                cw_gguf_close(g);
                tiny_vocab_free(&v);
            }
        }
    }
}
END_TEST

/* Ids and switches of other widths are those they say; ids that are none are left out. */
START_TEST(every_id_of_another_width) {
    static const uint32_t kinds[] = {CW_GGUF_U8,  CW_GGUF_I8,  CW_GGUF_U16, CW_GGUF_I16,
                                     CW_GGUF_U32, CW_GGUF_I32, CW_GGUF_U64, CW_GGUF_I64};
    for (size_t k = 0; k < N(kinds); k++) {
        uint64_t id = 65;
        struct tiny_vocab v;
        bytes_alone(&v, false);
        for (size_t i = 0; i < N(ids); i++) {
            mkgguf_scalar(&v.m, ids[i], kinds[k], &id, kind_bytes(kinds[k]));
        }
        struct tiny tiny = tiny_open(&v);
        ck_assert_int_eq(cw_tokenizer_bos(tiny.t), 65);
        ck_assert_int_eq(cw_tokenizer_eos(tiny.t), 65);
        ck_assert(cw_tokenizer_is_eog(tiny.t, 65));
        tiny_close(&tiny);
    }
}
END_TEST

/* Each id alone ends a reply or does not. */
START_TEST(every_id_by_what_it_ends) {
    for (size_t i = 0; i < N(ids); i++) {
        struct tiny_vocab v;
        bytes_alone(&v, i % 2 != 0);
        mkgguf_u32(&v.m, ids[i], 256);
        struct tiny tiny = tiny_open(&v);
        bool ender = strstr(ids[i], "eo") != NULL;
        ck_assert_msg(cw_tokenizer_is_eog(tiny.t, 256) == ender, "%s", ids[i]);
        ck_assert_int_eq(cw_tokenizer_bos(tiny.t), i == 0 ? 256 : -1);
        ck_assert_int_eq(cw_tokenizer_eos(tiny.t), i == 1 ? 256 : -1);
        tiny_close(&tiny);
    }
}
END_TEST

/* Texts that are there and empty: no name is no kind, no pre-tokenizer is the default with a
 * notice, no template writes no marker. */
START_TEST(every_text_that_is_empty) {
    struct tiny_vocab v;
    struct cw_gguf *g;
    struct cw_tokenizer *t;
    struct cw_err err = {0};
    tiny_vocab_init(&v, "", "gpt-2");
    tiny_vocab_add_alphabet(&v);
    ck_assert_int_eq(tiny_vocab_try(&v, NULL, &g, &t, &err), CW_EUNSUP);
    ck_assert_ptr_nonnull(strstr(err.text, "tokenizer model \"\""));
    tiny_vocab_free(&v);
    tiny_vocab_init(&v, "gpt2", "");
    tiny_vocab_add_alphabet(&v);
    mkgguf_str(&v.m, "tokenizer.chat_template", "");
    struct tiny tiny = tiny_open(&v);
    ck_assert_str_eq(cw_tokenizer_pre_name(tiny.t), "default");
    ck_assert_ptr_nonnull(strstr(cw_tokenizer_notice(tiny.t, 0), "tokenizer.ggml.pre"));
    tiny_close(&tiny);
}
END_TEST

/* A blank goes in front of SPM's text unless the file says no. */
START_TEST(a_blank_in_front_unless_the_file_says_no) {
    for (int said = 0; said < 3; said++) { /* nothing, false, true */
        struct tiny_vocab v;
        tiny_vocab_init(&v, "llama", NULL);
        tiny_vocab_add_byte_tokens(&v);
        tiny_vocab_add(&v, "a", NORMAL, -1);
        tiny_vocab_add(&v, BLANK, NORMAL, -2);
        int32_t begin = tiny_vocab_add(&v, "<s>", CONTROL, 0);
        mkgguf_u32(&v.m, "tokenizer.ggml.bos_token_id", (uint32_t)begin);
        if (said > 0) {
            mkgguf_bool(&v.m, "tokenizer.ggml.add_space_prefix", said == 2);
            mkgguf_bool(&v.m, "tokenizer.ggml.add_bos_token", said == 2);
        }
        struct tiny tiny = tiny_open(&v);
        check_tokens(tiny.t, "a", CW_TOK_BOS_EOS, said == 1 ? "a" : "<s>|" BLANK "|a");
        check_round_trip(tiny.t, "a", 1);
        check_round_trip(tiny.t, " a", 2);
        check_round_trip(tiny.t, "", 0);
        tiny_close(&tiny);
    }
}
END_TEST

int main(void) {
    Suite *suite = suite_create("tables");
    TCase *tcase = tcase_create("rows");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, every_name_is_of_its_family);
    tcase_add_loop_test(tcase, every_name_by_what_comes_with_it, 0, N_NAMES);
    tcase_add_loop_test(tcase, every_end_marker, 0, N_ENDERS);
    tcase_add_test(tcase, channels_are_parted_by_end);
    suite_add_tcase(suite, tcase);

    tcase = tcase_create("keys");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, every_key_of_another_type);
    tcase_add_test(tcase, every_list_of_another_type);
    tcase_add_test(tcase, every_id_of_another_width);
    tcase_add_test(tcase, every_id_by_what_it_ends);
    tcase_add_test(tcase, every_text_that_is_empty);
    tcase_add_test(tcase, a_blank_in_front_unless_the_file_says_no);
    suite_add_tcase(suite, tcase);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
