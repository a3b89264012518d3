/* SPDX-License-Identifier: MIT
 *
 * The option table and how its values are read and written as text. See options.h.
 */
#include "app/options.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/words.h"

#define AT(field) offsetof(struct app_settings, field)

enum {
    ANYWHERE = APP_ON_FLAG | APP_ON_CONFIG | APP_ON_SET,
    LIVE = ANYWHERE | APP_ON_LIVE,
    STARTING = APP_ON_FLAG | APP_ON_CONFIG, /* decided before the model is loaded */
};

static const double INT_TOP = 2147483647.0;

const char *const app_option_groups[] = {"model", "sampling", "engine", "interface", NULL};

/* clang-format off */
const struct app_option app_options[] = {
    /* model */
    {"model", "-m", "FILE", APP_STRING, 0, 0, NULL, AT(model), "", STARTING, "model",
     "The model: a GGUF file, or the name of one in the models directory."},
    {"system", "-sys --system-prompt", "TEXT", APP_STRING, 0, 0, NULL, AT(system), "", ANYWHERE, "model",
     "The system prompt."},
    {"chat-template", "--chat-template-file", "FILE|NAME", APP_STRING, 0, 0, NULL, AT(chat_template), "", STARTING, "model",
     "Use this Jinja template instead of the model's own: a file, the source itself, or a format's name (chatml, llama3, mistral-v7, gemma, ...)."},
    {"pre", "", "NAME", APP_STRING, 0, 0, NULL, AT(pre), "", STARTING, "model",
     "Use this pre-tokenizer whatever the file says."},
    {"ctx", "-c --ctx-size", "N", APP_INT, 0, INT_TOP, NULL, AT(n_ctx), "0", STARTING, "model",
     "Context size in tokens; 0: the smallest of 8192, the trained size and what memory allows."},
    {"predict", "-n --n-predict", "N", APP_INT, -1, INT_TOP, NULL, AT(n_predict), "-1", ANYWHERE, "model",
     "Longest reply in tokens; -1: until the context is full."},
    {"stop", "-r --reverse-prompt", "TEXT", APP_LIST, 0, 0, NULL, AT(stops), "", ANYWHERE, "model",
     "End the reply before this text (\\n: a line end); may be given several times."},
    {"think", "", "WHEN", APP_CHOICE, -1, 0, "auto off on low medium high", AT(think), "auto", ANYWHERE, "model",
     "Whether a thinking model thinks: auto (as its template does), off or on; for templates that know how much: low, medium or high."},

    {"overflow", "", "WHAT", APP_CHOICE, 0, 0, "drop stop summarise", AT(overflow), "drop", ANYWHERE, "model",
     "When the context is full: drop the oldest turns, stop, or summarise them."},
    {"private", "", NULL, APP_BOOL, 0, 0, NULL, AT(keep_private), "off", STARTING, "interface",
     "Keep nothing of the chat: no conversation, no history of the input line."},
    {"continue", "", NULL, APP_BOOL, 0, 0, NULL, AT(go_on), "off", APP_ON_FLAG, "interface",
     "Go on with the last conversation."},
    {"resume", "", "ID", APP_STRING, 0, 0, NULL, AT(resume), "", APP_ON_FLAG, "interface",
     "Go on with this conversation: its name or the beginning of it."},
    {"persona", "", "NAME", APP_STRING, 0, 0, NULL, AT(persona), "", STARTING, "model",
     "Begin with the settings of personas/NAME.ini in the config folder."},

    /* sampling */
    {"seed", "-s", "N", APP_INT64, -1, 4294967295.0, NULL, AT(seed), "-1", ANYWHERE, "sampling",
     "Seed of the draws; -1: a random one, 0 is a seed like any other."},
    {"temp", "--temperature", "T", APP_FLOAT, 0, 5, NULL, AT(sampling.temp), "0.8", LIVE, "sampling",
     "Temperature; 0 always takes the best token."},
    {"top-k", "", "N", APP_INT, 0, INT_TOP, NULL, AT(sampling.top_k), "0", LIVE, "sampling",
     "Keep the N best tokens; 0: off."},
    {"top-p", "", "P", APP_FLOAT, 0, 1, NULL, AT(sampling.top_p), "0.95", LIVE, "sampling",
     "Keep a token while the probability before it is at most P; 1: off."},
    {"min-p", "", "P", APP_FLOAT, 0, 1, NULL, AT(sampling.min_p), "0", LIVE, "sampling",
     "Drop tokens below P times the best one's probability; 0: off."},
    {"typical-p", "--typical", "P", APP_FLOAT, 0, 1, NULL, AT(sampling.typical_p), "1", LIVE, "sampling",
     "Locally typical sampling; 1: off."},
    {"repeat-penalty", "", "X", APP_FLOAT, 0.1, 10, NULL, AT(sampling.penalty_repeat), "1", LIVE, "sampling",
     "Penalty of tokens seen before; 1: off."},
    {"frequency-penalty", "", "X", APP_FLOAT, -10, 10, NULL, AT(sampling.penalty_frequency), "0", LIVE, "sampling",
     "Penalty for each time a token was seen; 0: off."},
    {"presence-penalty", "", "X", APP_FLOAT, -10, 10, NULL, AT(sampling.penalty_presence), "0", LIVE, "sampling",
     "Penalty of a token seen at all; 0: off."},
    {"repeat-last-n", "", "N", APP_INT, -1, INT_TOP, NULL, AT(sampling.penalty_last_n), "64", LIVE, "sampling",
     "Tokens the penalties look back at; 0: none, -1: all."},
    {"dry-multiplier", "", "X", APP_FLOAT, 0, 100, NULL, AT(sampling.dry_multiplier), "0", LIVE, "sampling",
     "Strength of the DRY penalty of repeated sequences; 0: off."},
    {"dry-base", "", "X", APP_FLOAT, 1, 10, NULL, AT(sampling.dry_base), "1.75", LIVE, "sampling",
     "Growth of the DRY penalty with the length of the repetition."},
    {"dry-allowed-length", "", "N", APP_INT, 1, INT_TOP, NULL, AT(sampling.dry_allowed_length), "2", LIVE, "sampling",
     "Repetitions up to this length go without a DRY penalty."},
    {"dry-last-n", "--dry-penalty-last-n", "N", APP_INT, -1, INT_TOP, NULL, AT(sampling.dry_last_n), "-1", LIVE, "sampling",
     "Tokens DRY looks back at; 0: none, -1: all."},
    {"xtc-probability", "", "P", APP_FLOAT, 0, 1, NULL, AT(sampling.xtc_probability), "0", LIVE, "sampling",
     "Chance of leaving out the top choices; 0: off."},
    {"xtc-threshold", "", "P", APP_FLOAT, 0, 1, NULL, AT(sampling.xtc_threshold), "0.1", LIVE, "sampling",
     "Probability from which a token counts as a top choice."},
    {"logit-bias", "-l", "ID+X", APP_BIAS, 0, 0, NULL, AT(sampling), "", LIVE, "sampling",
     "Add X to (ID-X: take X from, ID-inf: ban) the logit of a token; may be given several times."},

    /* engine */
    {"threads", "-t", "N", APP_INT, 0, 512, NULL, AT(n_threads), "0", STARTING, "engine",
     "Threads; 0: as many as the process may use cores."},
    {"chunk", "", "N", APP_INT, 0, 4096, NULL, AT(chunk), "0", STARTING, "engine",
     "Prompt tokens evaluated at once; 0: 512."},
    {"isa", "", "NAME", APP_CHOICE, -1, 0, "auto scalar avx2 avxvnni avx512", AT(isa), "auto", STARTING, "engine",
     "Kernels: auto (the widest this CPU has), scalar, avx2, avxvnni or avx512."},
    {"kv", "", "TYPE", APP_CHOICE, 0, 0, "f16 q8_0", AT(kv), "f16", STARTING, "engine",
     "Type of the key and value cache: f16 or q8_0."},
    {"cache-ram", "", "MIB", APP_INT, -1, 1048576, NULL, AT(cache_ram), "-1", STARTING, "engine",
     "Memory for branches besides the present one, in MiB; 0: none, -1: a quarter of what is free, at most 2048."},
    {"cache-disk", "", "MIB", APP_INT, 0, 16777216, NULL, AT(cache_disk), "2048", STARTING, "engine",
     "Disk for snapshots that let a conversation go on without being read anew, in MiB; 0: none."},
    {"exact", "", NULL, APP_BOOL, 0, 0, NULL, AT(exact), "off", STARTING, "engine",
     "Own kernels in place of OpenBLAS, so that float files too give the same bits everywhere."},
    {"naive", "", NULL, APP_BOOL, 0, 0, NULL, AT(naive), "off", STARTING, "engine",
     "Evaluate everything anew for every token, without reusing the cache."},
    {"lookup", "", "WHEN", APP_CHOICE, -1, 0, "auto off on", AT(lookup), "auto", ANYWHERE, "engine",
     "Guess tokens from what prompt and reply say already and check several at once, for the same reply sooner: auto (where it pays), off or on."},

    /* interface */
    {"color", "--colour", NULL, APP_BOOL, 0, 0, NULL, AT(color), "on", STARTING, "interface",
     "Use colours; NO_COLOR in the environment switches them off too."},
    {"plain", "", NULL, APP_BOOL, 0, 0, NULL, AT(plain), "off", STARTING, "interface",
     "Chat in plain lines instead of on a screen: for screen readers and simple terminals."},
    {"theme", "", "NAME", APP_STRING, 0, 0, NULL, AT(theme), "auto", ANYWHERE, "interface",
     "Colours: auto (by the ground, where the terminal tells), dark, light, high-contrast, none, or a file."},
    {"markdown", "", NULL, APP_BOOL, 0, 0, NULL, AT(markdown), "on", ANYWHERE, "interface",
     "Show replies as rendered Markdown; off: the raw text."},
    {"bell", "", NULL, APP_BOOL, 0, 0, NULL, AT(bell), "off", ANYWHERE, "interface",
     "Ring and notify when a reply that took long has ended."},
    {"bell-after", "", "S", APP_INT, 0, 86400, NULL, AT(bell_after), "10", ANYWHERE, "interface",
     "Seconds that are long to the bell."},
    {"title", "", NULL, APP_BOOL, 0, 0, NULL, AT(title), "off", ANYWHERE, "interface",
     "Show model and conversation in the title of the terminal's window."},
    {"mouse", "", NULL, APP_BOOL, 0, 0, NULL, AT(mouse), "off", ANYWHERE, "interface",
     "Capture the mouse: the wheel scrolls; the terminal's own selection then needs Shift."},
    {"prefill-typing", "", "WHEN", APP_CHOICE, -1, 0, "auto off on", AT(prefill_typing), "auto", ANYWHERE, "interface",
     "Evaluate a message while it is being written: auto (unless on battery), off or on."},
};
/* clang-format on */

const size_t app_n_options = sizeof app_options / sizeof *app_options;
_Static_assert(sizeof app_options / sizeof *app_options <= sizeof((struct app_settings *)0)->origin,
               "every option needs room for its origin");

/* ---- numbers in every locale ---------------------------------------------------------------- */

/* The program never sets LC_NUMERIC, but a library or an embedding test may have. */
static locale_t c_locale(void) {
    static locale_t loc;
    if (!loc) {
        loc = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    }
    return loc;
}

bool app_parse_double(const char *text, double *out) {
    if (!*text || text[strspn(text, "0123456789+-.eE")]) {
        return false;
    }
    char *end;
    double v = strtod_l(text, &end, c_locale());
    if (end == text || *end || !isfinite(v)) {
        return false;
    }
    *out = v;
    return true;
}

bool app_parse_int64(const char *text, int64_t *out) {
    if (!*text || text[strspn(text, "0123456789+-")]) {
        return false;
    }
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno) {
        return false;
    }
    *out = v;
    return true;
}

void app_print_float(char *dst, size_t cap, float v) {
    locale_t before = uselocale(c_locale());
    for (int digits = 1; digits <= 9; digits++) {
        snprintf(dst, cap, "%.*g", digits, (double)v);
        if (strtof(dst, NULL) == v) {
            break;
        }
    }
    uselocale(before);
}

/* ---- finding -------------------------------------------------------------------------------- */

static bool same_name(const char *a, const char *b) {
    for (; *a && *b; a++, b++) {
        char x = *a == '_' ? '-' : *a;
        if (x != *b) {
            return false;
        }
    }
    return *a == *b;
}

const struct app_option *app_option_find(const char *name) {
    const char *bare = strncmp(name, "--", 2) == 0 ? name + 2 : name;
    for (size_t i = 0; i < app_n_options; i++) {
        const struct app_option *o = &app_options[i];
        if (same_name(bare, o->name) || app_words_hold(o->flags, name, strlen(name), NULL)) {
            return o;
        }
    }
    return NULL;
}

/* ---- values --------------------------------------------------------------------------------- */

static void *field(struct app_settings *s, const struct app_option *o) {
    return (char *)s + o->offset;
}

static const void *const_field(const struct app_settings *s, const struct app_option *o) {
    return (const char *)s + o->offset;
}

static int check_range(const struct app_option *o, const char *value, double v,
                       struct cw_err *err) {
    if (v < o->min) {
        return cw_fail(err, CW_EINVAL, "%s: %s is less than %.10g", o->name, value, o->min);
    }
    if (v > o->max) {
        return cw_fail(err, CW_EINVAL, "%s: %s is more than %.10g", o->name, value, o->max);
    }
    return CW_OK;
}

static bool parse_bool(const char *text, bool *out) {
    int i;
    if (!app_words_hold("off on no yes false true 0 1", text, strlen(text), &i)) {
        return false;
    }
    *out = i % 2;
    return true;
}

static void list_free(char **list) {
    for (char **p = list; p && *p; p++) {
        free(*p);
    }
    free(list);
}

/* Line ends in a value, which is a line in config.ini: the letter behind a backslash, and what the
 * two stand for. Any other backslash is itself. */
static const char escapes[] = "n\nt\tr\r\\\\";
enum { N_ESCAPES = (sizeof escapes - 1) / 2 };

static void list_add(char ***list, const char *text) {
    size_t n = 0;
    while (*list && (*list)[n]) {
        n++;
    }
    *list = cw_reallocarray(*list, n + 2, sizeof **list);
    char *to = (*list)[n] = cw_strdup(text);
    (*list)[n + 1] = NULL;
    for (const char *at = text; *at; at++) {
        size_t e = at[0] == '\\' ? 0 : N_ESCAPES;
        while (e < N_ESCAPES && escapes[2 * e] != at[1]) {
            e++;
        }
        at += e < N_ESCAPES;
        *to++ = e < N_ESCAPES ? escapes[2 * e + 1] : *at;
    }
    *to = '\0';
}

/* The list as it would be given, a value a line. */
static void list_get(char *const *list, struct cw_buf *out) {
    for (; list && *list; list++) {
        if (out->len > 0) {
            cw_buf_putc(out, '\n');
        }
        for (const char *at = *list; *at; at++) {
            size_t e = 0;
            while (e < N_ESCAPES && escapes[2 * e + 1] != *at) {
                e++;
            }
            if (e < N_ESCAPES) {
                cw_buf_putc(out, '\\');
            }
            cw_buf_putc(out, e < N_ESCAPES ? escapes[2 * e] : *at);
        }
    }
}

/* One "ID+BIAS" of a bias list. `text` is cut up. */
static int bias_add(struct cw_sampling *s, const struct app_option *o, char *text,
                    struct cw_err *err) {
    char *sign = strpbrk(text, "+-");
    int64_t id;
    double bias;
    if (!sign || sign == text) {
        goto bad;
    }
    bool minus = *sign == '-';
    *sign = '\0';
    if (!app_parse_int64(text, &id) || id > INT32_MAX) {
        goto bad;
    }
    if (strcmp(sign + 1, "inf") == 0) {
        bias = HUGE_VAL;
    } else if (sign[1] == '+' || sign[1] == '-' || !app_parse_double(sign + 1, &bias)) {
        goto bad;
    }
    if (isinf(bias) && !minus) {
        return cw_fail(err, CW_EINVAL, "%s: only -inf (never choose the token) is allowed",
                       o->name);
    }
    if (s->n_bias >= CW_MAX_BIAS) {
        return cw_fail(err, CW_EINVAL, "%s: at most %d tokens", o->name, CW_MAX_BIAS);
    }
    s->bias[s->n_bias].id = (int32_t)id;
    s->bias[s->n_bias].bias = (float)(minus ? -bias : bias);
    s->n_bias++;
    return CW_OK;
bad:
    return cw_fail(err, CW_EINVAL, "%s: give a token id, a sign and a number, such as 42-1.5",
                   o->name);
}

static int set_bias(struct cw_sampling *s, const struct app_option *o, const char *value, bool add,
                    struct cw_err *err) {
    struct cw_sampling next = *s;
    char *copy = cw_strdup(value);
    int rc = CW_OK;
    if (!add) {
        next.n_bias = 0;
    }
    for (char *save = NULL, *part = strtok_r(copy, ", ", &save); part && rc == CW_OK;
         part = strtok_r(NULL, ", ", &save)) {
        rc = bias_add(&next, o, part, err);
    }
    free(copy);
    if (rc == CW_OK) {
        *s = next;
    }
    return rc;
}

static int set_value(struct app_settings *s, const struct app_option *o, const char *value,
                     bool add, struct cw_err *err) {
    double d;
    int64_t i;
    int rc;
    switch (o->kind) {
    case APP_BOOL: {
        bool b;
        if (!parse_bool(value, &b)) {
            return cw_fail(err, CW_EINVAL, "%s: '%s' is neither on nor off", o->name, value);
        }
        *(bool *)field(s, o) = b;
        return CW_OK;
    }
    case APP_INT:
    case APP_INT64:
        if (!app_parse_int64(value, &i)) {
            return cw_fail(err, CW_EINVAL, "%s: '%s' is not a whole number", o->name, value);
        }
        rc = check_range(o, value, (double)i, err);
        if (rc == CW_OK && o->kind == APP_INT) {
            *(int *)field(s, o) = (int)i;
        } else if (rc == CW_OK) {
            *(int64_t *)field(s, o) = i;
        }
        return rc;
    case APP_FLOAT:
        if (!app_parse_double(value, &d)) {
            return cw_fail(err, CW_EINVAL, "%s: '%s' is not a number", o->name, value);
        }
        rc = check_range(o, value, d, err);
        if (rc == CW_OK) {
            *(float *)field(s, o) = (float)d;
        }
        return rc;
    case APP_CHOICE: {
        int index;
        if (!app_words_hold(o->choices, value, strlen(value), &index)) {
            return cw_fail(err, CW_EINVAL, "%s: '%s' is none of: %s", o->name, value, o->choices);
        }
        *(int *)field(s, o) = (int)o->min + index;
        return CW_OK;
    }
    case APP_STRING: {
        char **p = field(s, o);
        char *fresh = *value ? cw_strdup(value) : NULL;
        free(*p); /* after the copy: `value` may be the old one */
        *p = fresh;
        return CW_OK;
    }
    case APP_LIST: {
        char ***p = field(s, o);
        if (!add || !*value) {
            list_free(*p);
            *p = NULL;
        }
        if (*value) {
            list_add(p, value);
        }
        return CW_OK;
    }
    case APP_BIAS:
        return set_bias(field(s, o), o, value, add && *value, err);
    }
    return cw_fail(err, CW_EINVAL, "%s: cannot be set", o->name);
}

int app_settings_set(struct app_settings *s, const struct app_option *o, const char *value,
                     enum app_origin origin, struct cw_err *err) {
    unsigned char *was = &s->origin[o - app_options];
    if (origin < *was) {
        /* Still checked: a mistake in config.ini is told even where a flag hides it. */
        struct app_settings scratch;
        app_settings_init(&scratch);
        int rc = set_value(&scratch, o, value, false, err);
        app_settings_free(&scratch);
        return rc;
    }
    int rc = set_value(s, o, value, origin == *was && origin != APP_LIVE, err);
    if (rc == CW_OK) {
        *was = (unsigned char)origin;
    }
    return rc;
}

static void get_bias(const struct cw_sampling *s, struct cw_buf *out) {
    char number[32];
    for (int i = 0; i < s->n_bias; i++) {
        float b = s->bias[i].bias;
        app_print_float(number, sizeof number, fabsf(b));
        cw_buf_printf(out, "%s%d%c%s", i ? "," : "", s->bias[i].id, b < 0 ? '-' : '+', number);
    }
}

char *app_settings_get(const struct app_settings *s, const struct app_option *o) {
    struct cw_buf out = {0};
    char number[32];
    const void *p = const_field(s, o);
    switch (o->kind) {
    case APP_BOOL:
        cw_buf_puts(&out, *(const bool *)p ? "on" : "off");
        break;
    case APP_INT:
        cw_buf_printf(&out, "%d", *(const int *)p);
        break;
    case APP_INT64:
        cw_buf_printf(&out, "%lld", (long long)*(const int64_t *)p);
        break;
    case APP_FLOAT:
        app_print_float(number, sizeof number, *(const float *)p);
        cw_buf_puts(&out, number);
        break;
    case APP_STRING: {
        const char *text = *(char *const *)p;
        cw_buf_puts(&out, text ? text : "");
        break;
    }
    case APP_CHOICE: {
        const char *choices = o->choices;
        struct cw_str word = {0};
        for (int i = *(const int *)p - (int)o->min; i >= 0; i--) {
            app_words_next(&choices, &word);
        }
        cw_buf_add(&out, word.data, word.len);
        break;
    }
    case APP_LIST:
        list_get(*(char **const *)p, &out);
        break;
    case APP_BIAS:
        get_bias(p, &out);
        break;
    }
    return cw_buf_take(&out);
}

enum app_origin app_settings_origin(const struct app_settings *s, const struct app_option *o) {
    return (enum app_origin)s->origin[o - app_options];
}

const char *app_origin_name(enum app_origin origin) {
    static const char *const names[APP_N_ORIGINS] = {"built-in", "model file", "config", "flag",
                                                     "live"};
    return origin < APP_N_ORIGINS ? names[origin] : "?";
}

void app_settings_init(struct app_settings *s) {
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < app_n_options; i++) {
        /* The table's own defaults are in range: test_options sets each. */
        set_value(s, &app_options[i], app_options[i].builtin, false, NULL);
    }
    const char *no_color = getenv("NO_COLOR"); /* no-color.org: any value but an empty one */
    if (no_color && *no_color) {
        s->color = false;
    }
}

void app_settings_free(struct app_settings *s) {
    for (size_t i = 0; i < app_n_options; i++) {
        const struct app_option *o = &app_options[i];
        if (o->kind == APP_STRING) {
            free(*(char **)field(s, o));
        } else if (o->kind == APP_LIST) {
            list_free(*(char ***)field(s, o));
        }
    }
    memset(s, 0, sizeof *s);
}

void app_settings_from_file(struct app_settings *s, unsigned set, const struct cw_sampling *file) {
    const struct {
        unsigned bit;
        const char *name;
        double value;
    } rows[] = {
        {CW_SET_TEMP, "temp", (double)file->temp},
        {CW_SET_TOP_P, "top-p", (double)file->top_p},
        {CW_SET_TOP_K, "top-k", file->top_k},
        {CW_SET_MIN_P, "min-p", (double)file->min_p},
        {CW_SET_REPEAT, "repeat-penalty", (double)file->penalty_repeat},
        {CW_SET_LAST_N, "repeat-last-n", file->penalty_last_n},
        {CW_SET_XTC_P, "xtc-probability", (double)file->xtc_probability},
        {CW_SET_XTC_T, "xtc-threshold", (double)file->xtc_threshold},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct app_option *o = app_option_find(rows[i].name);
        char text[32];
        if (set & rows[i].bit) {
            if (o->kind == APP_INT) {
                snprintf(text, sizeof text, "%.0f", rows[i].value); /* not "4e+01" */
            } else {
                app_print_float(text, sizeof text, (float)rows[i].value);
            }
            /* A value out of range is as good as none: the built-in one stays. */
            app_settings_set(s, o, text, APP_GGUF, NULL);
        }
    }
}
