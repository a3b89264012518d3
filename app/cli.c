/* SPDX-License-Identifier: MIT
 *
 * Parsing of command lines and what all commands share. See cli.h.
 */
#include "app/cli.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/words.h"

/* ---- errors and output ---------------------------------------------------------------------- */

/* One write, so that lines of several processes do not mix; `text` is printable already. */
static void tell(const char *kind, const char *what, const char *text) {
    struct cw_buf b = {0};
    cw_buf_printf(&b, "chinwag: %s%s%s%s\n", kind, what, *what ? ": " : "", text);
    ssize_t ignored = write(STDERR_FILENO, b.data, b.len);
    (void)ignored; /* nobody is left to be told */
    cw_buf_free(&b);
}

const char *cli_way_out(int code) {
    switch (code) {
    case CW_ETEMPLATE:
        return " (--chat-template NAME or FILE takes another)";
    case CW_EPRE:
        return " (--pre NAME reads the file with another one's rules)";
    default:
        return "";
    }
}

int cli_failed(const char *what, const struct cw_err *err) {
    struct cw_buf line = {0};
    if (err->code == CW_ECANCEL) {
        return CLI_INTERRUPTED;
    }
    cw_buf_printf(&line, "%s%s", *err->text ? err->text : cw_code_name(err->code),
                  cli_way_out(err->code));
    tell("", what, line.data);
    cw_buf_free(&line);
    return CLI_FAILED;
}

int cli_usage(const struct cli *c, const char *fmt, ...) {
    char raw[400];
    struct cw_err line;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    const char *name = c->command->name;
    cw_fail(&line, CW_EINVAL, "%s (see chinwag %s%s--help)", raw, name, *name ? " " : "");
    tell("", name, line.text);
    return CLI_USAGE;
}

void cli_note(const char *fmt, ...) {
    char raw[480];
    struct cw_err line;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    cw_fail(&line, CW_OK, "%s", raw);
    tell("note: ", "", line.text);
}

static struct cw_buf output;
static bool output_failed;

struct cw_buf *cli_out(void) {
    return &output;
}

/* One write of at most n pending bytes from *at on. */
static void write_some(size_t *at, size_t n) {
    ssize_t k = write(STDOUT_FILENO, output.data + *at, n);
    if (k >= 0) {
        *at += (size_t)k;
    } else if (errno == EAGAIN) {
        /* Whoever shares the descriptor made it non-blocking. */
        struct pollfd fd = {.fd = STDOUT_FILENO, .events = POLLOUT};
        poll(&fd, 1, -1);
    } else if (errno != EINTR) {
        output_failed = true;
        if (errno != EPIPE) {
            tell("", "standard output", strerror(errno));
        }
    }
}

bool cli_drain(size_t above) {
    size_t at = 0;
    if (output.len > above) {
        while (at < output.len && !output_failed) {
            write_some(&at, output.len - at);
        }
        cw_buf_clear(&output);
    }
    return !output_failed;
}

bool cli_drain_until(int wake_fd) {
    size_t at = 0;
    while (at < output.len && !output_failed) {
        struct pollfd fds[2] = {{.fd = STDOUT_FILENO, .events = POLLOUT},
                                {.fd = wake_fd, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0) {
            continue; /* EINTR: the signal shows in wake_fd */
        }
        if (fds[0].revents) {
            /* A pipe that can be written to takes this much without waiting. */
            write_some(&at, output.len - at < PIPE_BUF ? output.len - at : PIPE_BUF);
        } else {
            break;
        }
    }
    if (at < output.len) {
        memmove(output.data, output.data + at, output.len - at);
    }
    output.len -= at;
    return !output_failed;
}

int cli_finish(void) {
    bool ok = cli_drain(0);
    cw_buf_free(&output);
    return ok ? CLI_OK : CLI_FAILED;
}

/* ---- help ----------------------------------------------------------------------------------- */

static bool word_in(const char *list, const char *word) {
    return app_words_hold(list, word, strlen(word), NULL);
}

bool cli_accepts(const struct cli_command *command, const struct app_option *o) {
    char group[32];
    char name[64];
    snprintf(group, sizeof group, "@%s", o->group);
    snprintf(name, sizeof name, "--%s", o->name);
    for (size_t i = 0; i < command->n_flags; i++) {
        if (word_in(command->flags[i].names, name)) {
            return false; /* hidden by the command's own */
        }
    }
    return (o->where & APP_ON_FLAG) &&
           (word_in(command->options, o->name) || word_in(command->options, group));
}

/* Words of `text` at `indent`, wrapped at 79 columns; the line is at that column already. */
static void put_wrapped(const char *text, size_t indent) {
    enum { WIDTH = 79 };
    size_t column = indent;
    for (struct cw_str word; app_words_next(&text, &word);) {
        if (column > indent && column + 1 + word.len > WIDTH) {
            cw_buf_printf(&output, "\n%*s", (int)indent, "");
            column = indent;
        }
        cw_buf_printf(&output, "%s%.*s", column > indent ? " " : "", (int)word.len, word.data);
        column += word.len + (column > indent);
    }
    cw_buf_putc(&output, '\n');
}

/* "  -t, --threads N    sentence" */
static void help_row(const char *names, const char *arg, const char *text) {
    enum { INDENT = 26 };
    size_t begin = output.len;
    cw_buf_puts(&output, "  ");
    for (struct cw_str name; app_words_next(&names, &name);) {
        cw_buf_printf(&output, "%s%.*s", output.len > begin + 2 ? ", " : "", (int)name.len,
                      name.data);
    }
    cw_buf_printf(&output, "%s%s", arg ? " " : "", arg ? arg : "");
    size_t column = output.len - begin;
    if (column + 2 > INDENT) {
        cw_buf_putc(&output, '\n');
        column = 0;
    }
    cw_buf_printf(&output, "%*s", INDENT - (int)column, "");
    put_wrapped(text, INDENT);
}

static void help_option(const struct app_option *o) {
    struct cw_buf names = {0};
    struct cw_buf text = {0};
    /* Short spellings first, then the name, then the longer ones. */
    for (int pass = 0; pass < 2; pass++) {
        const char *flags = o->flags;
        for (struct cw_str flag; app_words_next(&flags, &flag);) {
            bool is_long = strncmp(flag.data, "--", 2) == 0;
            if (is_long == (pass == 1)) {
                cw_buf_printf(&names, "%.*s ", (int)flag.len, flag.data);
            }
        }
        if (pass == 0) {
            bool on = o->kind == APP_BOOL && strcmp(o->builtin, "on") == 0;
            cw_buf_printf(&names, "--%s%s ", on ? "[no-]" : "", o->name);
        }
    }
    cw_buf_puts(&text, o->help);
    if (*o->builtin && strcmp(o->builtin, "off") != 0) {
        cw_buf_printf(&text, " [%s]", o->builtin);
    }
    help_row(names.data, o->arg, text.data);
    cw_buf_free(&names);
    cw_buf_free(&text);
}

static int help(const struct cli_command *command) {
    struct cw_buf usage = {0};
    cw_buf_printf(&usage, "chinwag %s %s", command->name, command->synopsis);
    cw_buf_puts(&output, "usage: ");
    put_wrapped(usage.data, strlen("usage: "));
    cw_buf_free(&usage);
    cw_buf_putc(&output, '\n');
    put_wrapped(command->summary, 0);
    if (!*command->name) {
        cw_buf_printf(&output, "\ncommands (chinwag COMMAND --help tells more):\n");
        for (size_t i = 0; cli_commands[i]; i++) {
            help_row(cli_commands[i]->name, NULL, cli_commands[i]->summary);
        }
    }
    cw_buf_printf(&output, "\noptions:\n");
    for (size_t i = 0; i < command->n_flags; i++) {
        help_row(command->flags[i].names, command->flags[i].arg, command->flags[i].help);
    }
    help_row("-h --help", NULL, "Show this help.");
    for (const char *const *group = app_option_groups; *group; group++) {
        bool any = false;
        for (size_t i = 0; i < app_n_options; i++) {
            if (strcmp(app_options[i].group, *group) == 0 &&
                cli_accepts(command, &app_options[i])) {
                if (!any) {
                    cw_buf_printf(&output, "\n%s:\n", *group);
                }
                any = true;
                help_option(&app_options[i]);
            }
        }
    }
    return cli_finish();
}

/* ---- parsing -------------------------------------------------------------------------------- */

static const struct cli_flag *find_flag(const struct cli_command *command, const char *name) {
    for (size_t i = 0; i < command->n_flags; i++) {
        if (word_in(command->flags[i].names, name)) {
            return &command->flags[i];
        }
    }
    return NULL;
}

/* A row of the table by its spelling on a command line; "--no-NAME" of a bool sets *off. */
static const struct app_option *find_option(const struct cli_command *command, const char *name,
                                            bool *off) {
    char positive[64];
    *off = false;
    const struct app_option *o = app_option_find(name);
    if (!o && strncmp(name, "--no-", 5) == 0) {
        snprintf(positive, sizeof positive, "--%s", name + 5);
        o = app_option_find(positive);
        if (o && o->kind != APP_BOOL) {
            o = NULL;
        }
        *off = true;
    }
    return o && cli_accepts(command, o) ? o : NULL;
}

static void add_given(struct cli *c, const struct cli_flag *flag, const char *value) {
    c->given = cw_reallocarray(c->given, c->n_given + 1, sizeof *c->given);
    c->given[c->n_given].flag = flag;
    c->given[c->n_given].value = value;
    c->n_given++;
}

static bool is_file(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* There is no such option: tell, with the one that was likely meant. */
static int no_such_option(struct cli *c, const char *word) {
    bool off = strncmp(word, "--no-", 5) == 0; /* only what is on or off can be meant */
    const char *rest = word + (off ? 5 : 0);
    struct app_nearest near = {.word = {rest, strlen(rest)}};
    for (size_t i = 0; i < c->command->n_flags && !off; i++) {
        app_nearest_try(&near, c->command->flags[i].names);
    }
    for (size_t i = 0; i < app_n_options; i++) {
        const struct app_option *o = &app_options[i];
        if (cli_accepts(c->command, o) && (!off || o->kind == APP_BOOL)) {
            app_nearest_try(&near, off ? "" : o->flags);
            app_nearest_try(&near, o->name);
        }
    }
    if (!near.name.data) {
        return cli_usage(c, "%s: no such option", word);
    }
    const char *dashes = off ? "--no-" : *near.name.data == '-' ? "" : "--";
    return cli_usage(c, "%s: no such option; did you mean %s%.*s?", word, dashes,
                     (int)near.name.len, near.name.data);
}

static int no_such_command(struct cli *c, const char *word) {
    struct app_nearest near = {.word = {word, strlen(word)}};
    for (size_t i = 0; cli_commands[i]; i++) {
        app_nearest_try(&near, cli_commands[i]->name);
    }
    if (is_file(word)) {
        return cli_usage(c, "%s: no such command; did you mean -m %s?", word, word);
    }
    if (near.name.data) {
        return cli_usage(c, "%s: no such command; did you mean %.*s?", word, (int)near.name.len,
                         near.name.data);
    }
    return cli_usage(c, "%s: no such command", word);
}

/* One argument that begins with '-'; *i is its index, moved on past a value. Returns CLI_OK or
 * CLI_USAGE after telling why. */
static int parse_flag(struct cli *c, int argc, char **argv, int *i) {
    char name[64];
    const char *arg = argv[*i];
    const char *value = strncmp(arg, "--", 2) == 0 ? strchr(arg, '=') : NULL;
    size_t len = value ? (size_t)(value - arg) : strlen(arg);
    bool off = false;
    if (value) {
        value++;
    }
    if (len >= sizeof name) {
        return cli_usage(c, "%.60s...: no such option", arg);
    }
    memcpy(name, arg, len);
    name[len] = '\0';

    const struct cli_flag *flag = find_flag(c->command, name);
    const struct app_option *o = flag ? NULL : find_option(c->command, name, &off);
    if (!flag && !o) {
        return no_such_option(c, name);
    }
    bool wants = flag ? flag->arg != NULL : o->kind != APP_BOOL;
    if (wants && !value) {
        if (*i + 1 >= argc) {
            return cli_usage(c, "%s: %s is missing", name, flag ? flag->arg : o->arg);
        }
        value = argv[++*i];
    }
    if (flag) {
        if (!wants && value) {
            return cli_usage(c, "%s: takes no value", name);
        }
        add_given(c, flag, value);
        return CLI_OK;
    }
    if (o->kind == APP_BOOL) {
        if (off && value) {
            return cli_usage(c, "%s: takes no value", name);
        }
        value = off ? "off" : value ? value : "on";
    }
    struct cw_err e;
    if (app_settings_set(&c->settings, o, value, APP_FLAG, &e) != CW_OK) {
        return cli_usage(c, "%s", e.text);
    }
    return CLI_OK;
}

int cli_run(const struct cli_command *command, int argc, char **argv) {
    struct cli c = {.command = command};
    int status = CLI_OK;
    bool flags = true;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            break;
        }
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            return help(command);
        }
        /* The value of a flag is not looked at: `-p --help` asks about --help. */
        bool off;
        const struct cli_flag *flag = find_flag(command, argv[i]);
        const struct app_option *o = flag ? NULL : find_option(command, argv[i], &off);
        if (flag ? flag->arg != NULL : o && o->kind != APP_BOOL) {
            i++;
        }
    }
    app_settings_init(&c.settings);
    app_paths_init(&c.paths);
    for (int i = 0; i < argc && status == CLI_OK; i++) {
        if (flags && strcmp(argv[i], "--") == 0) {
            flags = false;
        } else if (flags && argv[i][0] == '-' && argv[i][1]) {
            status = parse_flag(&c, argc, argv, &i);
        } else if (!command->operand && *command->name) {
            status = cli_usage(&c, "%s: takes no such argument", argv[i]);
        } else if (!command->operand) {
            status = no_such_command(&c, argv[i]);
        } else if (c.operand && c.n_more < command->n_more) {
            c.more[c.n_more++] = argv[i];
        } else if (c.operand) {
            status = cli_usage(&c, "%s: only one %s can be given", argv[i], command->operand);
        } else {
            c.operand = argv[i];
        }
    }
    if (status == CLI_OK) {
        status = command->run(&c);
    }
    free(c.given);
    app_paths_free(&c.paths);
    app_settings_free(&c.settings);
    return status;
}

const char *cli_next_value(const struct cli *c, const char *name, size_t *at) {
    while (*at < c->n_given) {
        size_t i = (*at)++;
        if (word_in(c->given[i].flag->names, name)) {
            return c->given[i].value ? c->given[i].value : "";
        }
    }
    return NULL;
}

const char *cli_value(const struct cli *c, const char *name) {
    const char *last = NULL;
    size_t at = 0;
    for (const char *v; (v = cli_next_value(c, name, &at));) {
        last = v;
    }
    return last;
}

bool cli_has(const struct cli *c, const char *name) {
    return cli_value(c, name) != NULL;
}

bool cli_int(const struct cli *c, const char *name, int64_t min, int64_t max, int64_t fallback,
             int64_t *out) {
    const char *text = cli_value(c, name);
    *out = fallback;
    if (!text) {
        return true;
    }
    if (!app_parse_int64(text, out)) {
        cli_usage(c, "%s: '%s' is not a whole number", name, text);
        return false;
    }
    if (*out < min || *out > max) {
        cli_usage(c, "%s: %s is not between %lld and %lld", name, text, (long long)min,
                  (long long)max);
        return false;
    }
    return true;
}

bool cli_parse_ids(const char *text, size_t len, int64_t max, struct cw_ids *out,
                   struct cw_err *err) {
    for (size_t i = 0; i < len;) {
        unsigned char ch = (unsigned char)text[i];
        if (ch == ',' || ch == '[' || ch == ']' || ch == ' ' || (ch >= '\t' && ch <= '\r')) {
            i++;
            continue;
        }
        int64_t v = 0;
        size_t begin = i;
        while (i < len && text[i] >= '0' && text[i] <= '9' && v <= max) {
            v = v * 10 + (text[i++] - '0');
        }
        if (i == begin) {
            cw_fail(err, CW_EINVAL, "'%c' where a token id should be", text[i]);
            return false;
        }
        if (v > max) {
            cw_fail(err, CW_EINVAL, "a token id above %lld", (long long)max);
            return false;
        }
        cw_ids_add(out, (int32_t)v);
    }
    return true;
}

/* ---- files ---------------------------------------------------------------------------------- */

static int no_such_template(const char *given, struct cw_err *err) {
    struct cw_buf names = {0};
    const char *name;
    for (size_t i = 0; (name = cw_template_builtin_name(i)) != NULL; i++) {
        cw_buf_printf(&names, "%s%s", i > 0 ? " " : "", name);
    }
    cw_fail(err, CW_ENOENT, "%.32s: no such file or template; known by name: %s", given,
            names.data);
    cw_buf_free(&names);
    return err->code;
}

int cli_template_source(const struct app_settings *s, char **out, struct cw_err *err) {
    const char *given = s->chat_template;
    size_t len;
    *out = NULL;
    if (!given) {
        return CW_OK;
    }
    if (strstr(given, "{{") || strstr(given, "{%") || strchr(given, '\n')) {
        *out = cw_strdup(given);
        return CW_OK;
    }
    const char *builtin = cw_template_builtin(given);
    if (builtin) {
        *out = cw_strdup(builtin);
        return CW_OK;
    }
    *out = cli_read_file(given, &len, err);
    if (!*out) {
        return err->code == CW_ENOENT && !strchr(given, '/') ? no_such_template(given, err)
                                                             : err->code;
    }
    if (len == 0 || strlen(*out) != len) {
        free(*out);
        *out = NULL;
        return cw_fail(err, CW_EFORMAT, "%s: %s", given,
                       len == 0 ? "an empty template" : "a NUL byte in a template");
    }
    return CW_OK;
}
