/* SPDX-License-Identifier: MIT
 *
 * The pre-tokenizers of byte-level BPE, by the names that GGUF files give them.
 *
 * The patterns are the published ones of each family's tokenizer, written so that PCRE2 reads them
 * as their own engines do and so that none takes more than linear time:
 * - white space is Unicode's White_Space (PCRE2's \s has U+180E besides);
 * - contractions list both cases, because caseless matching would also take U+017F for an s;
 * - `\s+$` must begin where the white space begins, or a long run that does not end the text is
 *   tried from each of its characters.
 */
#include "tokenizer_impl.h"

/* The inside of a class. */
#define WS                                                                                         \
    "\\t-\\r\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"          \
    "\\x{205f}\\x{3000}"

#define SPACE     "[" WS "]"
#define NOT_SPACE "[^" WS "]"

/* White space before a word leaves its last character to the word. */
#define SPACE_BUT_LAST SPACE "+(?!" NOT_SPACE ")"
#define LINE_ENDS      SPACE "*[\\r\\n]+"
#define SYMBOLS        " ?[^" WS "\\p{L}\\p{N}]+"
#define CONTRACTION    "'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])"
#define PREFIXED       "[^\\r\\n\\p{L}\\p{N}]?"

#define GPT2 "'(?:[stmd]|re|ve|ll)| ?\\p{L}+| ?\\p{N}+|" SYMBOLS "|" SPACE_BUT_LAST

/* The family of llama3; they differ in how many digits stand together. */
#define WORDS(digits)                                                                              \
    PREFIXED "\\p{L}+|" digits "|" SYMBOLS "[\\r\\n]*|" LINE_ENDS "|" SPACE_BUT_LAST "|" SPACE "+"
#define LLAMA(digits) CONTRACTION "|" WORDS(digits)

/* Words cut where lower case meets upper case (o200k). */
#define UPPER "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define CASED(tail, digits)                                                                        \
    PREFIXED UPPER "*" LOWER "+" tail "|" PREFIXED UPPER "+" LOWER "*" tail "|" digits "|" SYMBOLS \
                   "[\\r\\n/]*|" LINE_ENDS "|" SPACE_BUT_LAST "|" SPACE "+"

#define FINNISH " ?[^(|.,!?)" WS "\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}\\x{60c}]+"

/* The letters with case that DeepSeek's first tokenizers list one by one. */
#define CASED_LETTERS                                                                              \
    "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}\\x{1bc}-\\x{1bf}"                 \
    "\\x{1c4}-\\x{293}"                                                                            \
    "\\x{295}-\\x{2af}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}"          \
    "\\x{388}-\\x{38a}\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}"                 \
    "\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}"                     \
    "\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}"                 \
    "\\x{1d6b}-\\x{1d77}\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}"                 \
    "\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}"         \
    "\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}"        \
    "\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}"                 \
    "\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}\\x{210a}-\\x{2113}\\x{2115}"         \
    "\\x{2119}-\\x{211d}\\x{2124}\\x{2126}\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}"         \
    "\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}"                   \
    "\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}"                  \
    "\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}"                 \
    "\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}"                 \
    "\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}"             \
    "\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}\\x{118a0}-\\x{118df}"         \
    "\\x{1e900}-\\x{1e943}"

#define EAST_ASIAN "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+"

typedef const char *const patterns[PRE_MAX_PATTERNS];

static patterns gpt2 = {GPT2};
static patterns digits_then_gpt2 = {"\\p{N}", GPT2};
static patterns llama3 = {LLAMA("\\p{N}{1,3}")};
static patterns qwen2 = {LLAMA("\\p{N}")};
static patterns ufakzeka = {WORDS("\\p{N}")}; /* Turkish suffixes follow an apostrophe */
static patterns minicpm5 = {"\\p{N}{1,3}", LLAMA("\\p{N}+")};
static patterns qwen35 = {CONTRACTION "|" PREFIXED "[\\p{L}\\p{M}]+|\\p{N}| ?[^" WS
                                      "\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" LINE_ENDS "|" SPACE_BUT_LAST
                                      "|" SPACE "+"};
static patterns deepseek_llm = {"[\\r\\n]",
                                SPACE "?[" CASED_LETTERS "]+",
                                SPACE "?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}"
                                      "\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]+",
                                "(?<!" SPACE ")" SPACE "++\\z",
                                EAST_ASIAN,
                                "\\p{N}+"};
static patterns deepseek_coder = {"[\\r\\n]", SPACE "?\\p{L}+", SPACE "?\\p{P}+", EAST_ASIAN,
                                  "\\p{N}"};
static patterns deepseek_v3 = {"\\p{N}{1,3}", "[\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{30ff}]+",
                               "[!-/:-@\\[-`{-~][A-Za-z]+"
                               "|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
                               "| ?[\\p{P}\\p{S}]+[\\r\\n]*"
                               "|" LINE_ENDS "|" SPACE_BUT_LAST "|" SPACE "+"};
static patterns falcon = {"[\\p{P}$+<=>^~|`]+", GPT2, "[0-9][0-9][0-9]"};
static patterns fallback = {"[\\p{P}$+<=>^~|]+", GPT2, "\\p{N}+", "[0-9][0-9][0-9]"};
static patterns tekken = {CASED("", "\\p{N}")};
static patterns gpt4o = {CASED("(?:" CONTRACTION ")?", "\\p{N}{1,3}")};
static patterns finnish = {FINNISH};
static patterns finnish_digits = {FINNISH, "\\p{N}"};
static patterns bailing = {CONTRACTION "|" PREFIXED "\\p{L}+|\\p{N}|" SYMBOLS "[\\r\\n]*|" SPACE
                                       "*[\\r\\n]|" SPACE_BUT_LAST "|" SPACE "+"};
static patterns seed_coder = {CONTRACTION "|" PREFIXED "\\p{L}+|\\p{N}| ?[^\\r\\n" WS
                                          "\\p{L}\\p{N}]+|" LINE_ENDS "|" SPACE_BUT_LAST "|" SPACE
                                          "+"};
static patterns none = {NULL}; /* cut at newlines only, by the encoder */

static const struct cw_pre rows[] = {
    {"default", fallback, 0},

    {"gpt-2", gpt2, 0},
    {"phi-2", gpt2, 0},
    {"mpt", gpt2, 0},
    {"olmo", gpt2, 0},
    {"jais", gpt2, 0},
    {"jina-es", gpt2, 0},
    {"jina-de", gpt2, 0},
    {"jina-v1-en", gpt2, 0},
    {"jina-v2-es", gpt2, 0},
    {"jina-v2-de", gpt2, 0},
    {"jina-v2-code", gpt2, 0},
    {"roberta-bpe", gpt2, 0},
    {"modern-bert", gpt2, 0},
    {"gigachat", gpt2, 0},
    {"a.x-4.0", gpt2, 0},
    {"mellum", gpt2, 0},
    {"exaone4", gpt2, 0},
    {"trillion", gpt2, 0},
    {"granite-docling", gpt2, 0},

    {"smollm", digits_then_gpt2, 0},
    {"starcoder", digits_then_gpt2, 0},
    {"refact", digits_then_gpt2, 0},
    {"command-r", digits_then_gpt2, 0},
    {"codeshell", digits_then_gpt2, 0},
    {"exaone", digits_then_gpt2, 0},
    {"minerva-7b", digits_then_gpt2, 0},
    {"mellum2", digits_then_gpt2, 0},

    {"llama-bpe", llama3, PRE_IGNORE_MERGES | PRE_ADD_BOS},
    {"llama3", llama3, PRE_IGNORE_MERGES | PRE_ADD_BOS},
    {"llama-v3", llama3, PRE_IGNORE_MERGES | PRE_ADD_BOS},
    {"falcon3", llama3, PRE_IGNORE_MERGES | PRE_ADD_BOS},
    {"falcon-h1", llama3, PRE_IGNORE_MERGES | PRE_ADD_BOS},
    {"pixtral", llama3, PRE_IGNORE_MERGES | PRE_ADD_BOS},
    {"midm-2.0", llama3, PRE_IGNORE_MERGES | PRE_ADD_BOS},
    {"lfm2", llama3, PRE_IGNORE_MERGES | PRE_ADD_BOS},
    {"jina-v5-nano", llama3, PRE_IGNORE_MERGES | PRE_ADD_BOS},
    {"glm4", llama3, PRE_IGNORE_MERGES},
    {"glm5", llama3, PRE_IGNORE_MERGES},
    {"dbrx", llama3, 0},
    {"smaug-bpe", llama3, 0},
    {"chatglm-bpe", llama3, 0},
    {"minicpm5", minicpm5, PRE_IGNORE_MERGES},

    {"qwen2", qwen2, 0},
    {"deepseek-r1-qwen", qwen2, 0},
    {"stablelm2", qwen2, 0},
    {"megrez", qwen2, 0},
    {"kormo", qwen2, 0},
    {"f2llmv2", qwen2, 0},
    {"hunyuan", qwen2, 0},
    {"solar-open", qwen2, 0},
    {"grok-2", qwen2, 0},
    {"ufakzeka", ufakzeka, 0},
    {"qwen35", qwen35, 0},

    {"deepseek-llm", deepseek_llm, 0},
    {"deepseek-coder", deepseek_coder, 0},
    {"deepseek-v3", deepseek_v3, 0},
    {"hunyuan-dense", deepseek_v3, 0},
    {"joyai-llm", deepseek_v3, 0},
    {"hy_v4", deepseek_v3, 0},

    {"falcon", falcon, 0},
    {"tekken", tekken, PRE_IGNORE_MERGES | PRE_ADD_BOS},
    {"gpt-4o", gpt4o, 0},
    {"llama4", gpt4o, 0},
    {"kanana2", gpt4o, 0},
    {"minimax-m2", gpt4o, 0},
    {"talkie", gpt4o, 0},
    {"granite-embed-multi-97m", gpt4o, PRE_IGNORE_MERGES},
    {"bloom", finnish, 0},
    {"gpt3-finnish", finnish, 0},
    {"poro-chat", finnish, 0},
    {"viking", finnish_digits, 0},
    {"bailingmoe", bailing, 0},
    {"bailingmoe2", bailing, 0},
    {"llada-moe", bailing, 0},
    {"seed-coder", seed_coder, 0},

    {"gemma4", none, PRE_TEXT | PRE_ADD_BOS},
    {"granite-embed-multi-311m", none, PRE_TEXT | PRE_ADD_BOS},
};

const struct cw_pre *cw_pre_at(size_t i) {
    return i < sizeof rows / sizeof *rows ? &rows[i] : NULL;
}

const struct cw_pre *cw_pre_find(struct cw_str name) {
    const struct cw_pre *pre;
    for (size_t i = 0; (pre = cw_pre_at(i)) != NULL; i++) {
        if (cw_str_eq(name, pre->name)) {
            return pre;
        }
    }
    return NULL;
}
