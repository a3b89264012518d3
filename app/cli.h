/* SPDX-License-Identifier: MIT
 *
 * The command line: a command is one struct, its flags are rows, and both the parser and --help
 * read them. Flags of the option table are accepted wherever a command names them.
 *
 * Exit status of every command: 0 done, 1 failed, 2 wrong usage, 130 interrupted. Errors are one
 * line on standard error, `chinwag: what: why`.
 */
#ifndef APP_CLI_H
#define APP_CLI_H

#include "app/options.h"
#include "app/paths.h"

enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_INTERRUPTED = 130 };

/* A flag that only its command knows; it hides one of the table with the same spelling. */
struct cli_flag {
    const char *names; /* space separated: "-p --prompt" */
    const char *arg;   /* what its value is called in help; NULL: it takes none */
    const char *help;  /* one sentence */
};

enum { CLI_MAX_MORE = 32 };

struct cli;
struct cli_command {
    const char *name;     /* "logits"; "" for the chat itself */
    const char *synopsis; /* what follows the name in the usage line */
    const char *summary;  /* one sentence */
    const char *operand;  /* what the one operand is called; NULL: it takes none */
    size_t n_more;        /* further operands it takes, at most CLI_MAX_MORE */
    const char *options;  /* rows of the option table it accepts, space separated; @group for all
                           * of a group */
    const struct cli_flag *flags;
    size_t n_flags;
    int (*run)(struct cli *c); /* returns the exit status */
};

/* A parsed command line. Values point into argv. */
struct cli {
    const struct cli_command *command;
    struct app_settings settings;
    struct app_paths paths;
    const char *operand; /* NULL: not given */
    const char *more[CLI_MAX_MORE];
    size_t n_more;
    struct {
        const struct cli_flag *flag;
        const char *value;
    } * given; /* [n_given] flags of the command, in order */
    size_t n_given;
};

/* Parse argv[0..argc), which begins after the command's name, and run the command; --help is
 * answered here. Returns the exit status. */
int cli_run(const struct cli_command *command, int argc, char **argv);

/* The commands besides the chat, NULL-terminated. */
extern const struct cli_command *const cli_commands[];
extern const struct cli_command cli_chat, cli_info, cli_tokenize, cli_render, cli_logits,
    cli_generate, cli_perplexity, cli_bench, cli_man, cli_completion, cli_conversations, cli_export,
    cli_import, cli_delete, cli_forget;

/* Whether a command takes this row of the option table. */
bool cli_accepts(const struct cli_command *command, const struct app_option *o);

/* Whether a flag of the command was given, its last value (NULL: not given), and each value in
 * turn: start with *at = 0, NULL ends. `name` is one of its spellings. */
bool cli_has(const struct cli *c, const char *name);
const char *cli_value(const struct cli *c, const char *name);
const char *cli_next_value(const struct cli *c, const char *name, size_t *at);

/* The value of a flag as a whole number in [min, max], or `fallback` when it was not given. False
 * after telling what is wrong: return CLI_USAGE then. */
bool cli_int(const struct cli *c, const char *name, int64_t min, int64_t max, int64_t fallback,
             int64_t *out);
/* A list of whole numbers in [0, max]: "1,2,3", also with blanks and brackets. False: err says what
 * is wrong. */
bool cli_parse_ids(const char *text, size_t len, int64_t max, struct cw_ids *out,
                   struct cw_err *err);

/* Tell an error and return the status for it: CLI_FAILED, or CLI_INTERRUPTED for CW_ECANCEL. */
int cli_failed(const char *what, const struct cw_err *err);
/* What an error of this code leaves to try, as " (--option ...)"; "": nothing to name. */
const char *cli_way_out(int code);
/* Tell wrong usage, pointing to --help. Returns CLI_USAGE. */
int cli_usage(const struct cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Something to know that is no error: "chinwag: note: ...". */
void cli_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Standard output goes through one buffer, so that a failure keeps its reason. Append to it; drain
 * writes what is pending once that is more than `above` bytes. False when it could not be written,
 * told already (silently when the reader is simply gone): give up then. */
struct cw_buf *cli_out(void);
bool cli_drain(size_t above);
/* Write what is pending, but stop waiting for a stalled reader once `wake_fd` is readable; the rest
 * stays pending. False as above. */
bool cli_drain_until(int wake_fd);
/* Write the rest. CLI_FAILED if anything could not be written; to be returned last. */
int cli_finish(void);

/* All of a file ("-": standard input). NULL after filling err. Caller must free. */
char *cli_read_file(const char *path, size_t *len, struct cw_err *err);

/* The file that -m means: a path, the name of a file in the models directory (also without .gguf,
 * or a beginning of it that only one has), or the default model. CW_ENOENT with a line that says
 * how to get one. *out: caller must free. */
int cli_find_model(const struct app_settings *s, const struct app_paths *paths, char **out,
                   struct cw_err *err);
/* The source of --chat-template: the text itself if it looks like one, else the file's. *out is
 * NULL when none was given; caller must free. */
int cli_template_source(const struct app_settings *s, char **out, struct cw_err *err);
/* The seed to use: the given one, or one from the system. */
uint32_t cli_seed(const struct app_settings *s);

#endif
