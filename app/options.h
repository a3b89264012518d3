/* SPDX-License-Identifier: MIT
 *
 * The one table of options. Flags, config.ini, /set, /show, --help, the man page and completion all
 * read it: an option is a row, nothing else.
 *
 * Order of settings: built-in < GGUF general.sampling.* < config < flag < live key. Each value
 * remembers where it came from.
 *
 * Settings belong to the main thread.
 */
#ifndef APP_OPTIONS_H
#define APP_OPTIONS_H

#include "chinwag/generator.h"

enum app_origin { APP_BUILTIN, APP_GGUF, APP_CONFIG, APP_FLAG, APP_LIVE, APP_N_ORIGINS };

/* What a value is and how it is stored in struct app_settings. */
enum app_kind {
    APP_BOOL,   /* bool; "on" or "off" */
    APP_INT,    /* int or int32_t */
    APP_FLOAT,  /* float */
    APP_STRING, /* char *, NULL when empty */
    APP_CHOICE, /* int: min + index in `choices` */
    APP_INT64,  /* int64_t */
    APP_LIST,   /* char **, NULL-terminated, NULL when empty; a repeated flag or key adds to it */
    APP_BIAS,   /* the bias list of struct cw_sampling: "ID+BIAS", "ID-BIAS", comma-separated */
};

/* All settings of the program, as values. Strings are owned by the struct. */
struct app_settings {
    struct cw_sampling sampling;
    char *model;         /* -m */
    char *system;        /* -sys: the system prompt, NULL: none */
    char *chat_template; /* --chat-template: FILE or source */
    char *pre;           /* --pre: pre-tokenizer override */
    int n_ctx, n_predict, n_threads, chunk;
    int isa; /* enum cw_isa */
    int kv;  /* enum cw_kv_type */
    bool exact, naive;
    int cache_ram;  /* MiB of branches besides the present one; -1: what memory allows, 0: none */
    int cache_disk; /* MiB of snapshots; 0: none */
    int lookup;     /* -1: where it pays, 0, 1: always */
    int64_t seed;   /* -1: random */
    bool color;     /* off also by NO_COLOR, as a built-in value */
    bool bell, title, mouse;  /* of the terminal */
    bool plain;               /* lines instead of a screen */
    int bell_after;           /* seconds a reply takes at least to be told */
    int prefill_typing;       /* -1: unless on battery, 0, 1 */
    char *theme;              /* name or file, NULL as "auto" */
    bool markdown;            /* replies are rendered */
    int think;                /* -1 as the template, 0, 1, 2 to 4 for how much */
    int overflow;             /* enum app_overflow */
    char *persona;            /* taken at the start */
    bool keep_private;        /* nothing of the chat is kept */
    bool go_on;               /* begin with the last conversation */
    char *resume;             /* or with this one */
    char **stops;             /* NULL-terminated list, NULL when empty */
    unsigned char origin[64]; /* enum app_origin, by row of the table */
};

enum {
    APP_ON_FLAG = 1,   /* may be given on the command line */
    APP_ON_CONFIG = 2, /* may stand in config.ini */
    APP_ON_SET = 4,    /* may be changed by /set */
    APP_ON_LIVE = 8,   /* a change takes hold at the very next token */
};

struct app_option {
    const char *name;  /* "temp": /set NAME, config key; "--temp" on the command line */
    const char *flags; /* further spellings, space separated: "-t --threads" */
    const char *arg;   /* what the value is called in help: "N", "FILE"; NULL for bool */
    enum app_kind kind;
    double min, max;     /* for numbers, inclusive */
    const char *choices; /* for APP_CHOICE: space separated, in the order of the int's values,
                          * the first being `min` */
    size_t offset;       /* in struct app_settings */
    const char *builtin; /* default as text */
    unsigned where;      /* APP_ON_* */
    const char *group;   /* one of app_option_groups */
    const char *help;    /* one sentence */
};

extern const struct app_option app_options[];
extern const size_t app_n_options;
extern const char *const app_option_groups[]; /* in the order they are shown, NULL-terminated */

void app_settings_init(struct app_settings *s); /* built-in values */
void app_settings_free(struct app_settings *s);

/* By name or flag, NULL when there is none. In names '_' is read as '-' ("top_p"). */
const struct app_option *app_option_find(const char *name);
/* Parse `value` and set it, checking type and range; CW_EINVAL with a line for a person that begins
 * with the option's name. A lower origin never overwrites a higher one (that is CW_OK and changes
 * nothing). Numbers are read with a decimal point in every locale. Lists: the same origin adds,
 * except APP_LIVE, which replaces; an empty value empties. */
int app_settings_set(struct app_settings *s, const struct app_option *o, const char *value,
                     enum app_origin origin, struct cw_err *err);
/* The value as text, as /set would take it. Caller must free. */
char *app_settings_get(const struct app_settings *s, const struct app_option *o);
enum app_origin app_settings_origin(const struct app_settings *s, const struct app_option *o);
const char *app_origin_name(enum app_origin origin);

/* Take over what a model's file recommends (cw_generator_file_sampling), as APP_GGUF: `set` is the
 * mask of CW_SET_*. Values given by config, flag or key stay. */
void app_settings_from_file(struct app_settings *s, unsigned set, const struct cw_sampling *file);

/* Numbers with a decimal point in every locale. Parsing takes plain decimal notation only (no hex,
 * no infinity, no blanks) and the whole string; printing gives the shortest text that reads back as
 * the same float. */
bool app_parse_double(const char *text, double *out);
bool app_parse_int64(const char *text, int64_t *out);
void app_print_float(char *dst, size_t cap, float v);

#endif
