/* SPDX-License-Identifier: MIT
 *
 * The program: make the process sane, find the command, run it. The chat itself is the command
 * without a name; one-shot replies are the same command away from a terminal.
 */
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/app.h"
#include "app/cli.h"
#include "app/config.h"
#include "app/oneshot.h"
#include "app/personas.h"
#include "ui/keymap.h"

/* Letters are UTF-8 wherever the system can: a locale that is missing, or of another encoding,
 * gives way to C.UTF-8. Only LC_CTYPE is ever set, so numbers keep their point. */
static void set_locale(void) {
    static const char *const names[] = {"", "C.UTF-8", "C.utf8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (setlocale(LC_CTYPE, names[i]) && strcasecmp(nl_langinfo(CODESET), "UTF-8") == 0) {
            return;
        }
    }
}

/* A closed standard descriptor would be taken by the next file opened, the model's for one. Each is
 * filled so that using it fails. */
static void fill_descriptors(void) {
    static const int modes[3] = {O_WRONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
            int got = open("/dev/null", modes[fd]);
            (void)got; /* without /dev/null nothing better can be done */
        }
    }
}

/* ---- the chat and one-shot replies ---------------------------------------------------------- */

/* Told twice: the chat's screen hides what stands on standard error. */
static void on_config_warning(void *arg, const char *line) {
    cli_note("%s", line);
    app_chat_note(line);
}

static int on_config_key(void *arg, const char *action, const char *keys, int line,
                         struct cw_err *err) {
    return ui_keymap_bind(action, keys, line, err);
}

static void on_key_taken(void *arg, int line, const char *what) {
    struct cw_err e;
    cw_fail(&e, CW_OK, "%s:%d: %s", (const char *)arg, line, what);
    on_config_warning(NULL, e.text);
}

/* --config, or config.ini where it should be; that one may be missing. */
static int load_config(struct cli *c) {
    const struct app_config_sink sink = {.warn = on_config_warning, .key = on_config_key};
    struct cw_err err = {0};
    const char *given = cli_value(c, "--config");
    char *path = given ? cw_strdup(given) : app_path_join(c->paths.config, "config.ini");
    int rc = *path ? app_config_load(&c->settings, path, &sink, &err) : CW_OK;
    ui_keymap_settle(on_key_taken, path);
    free(path);
    return rc == CW_OK || (rc == CW_ENOENT && !given) ? CLI_OK : cli_failed("config", &err);
}

/* Whether our parent reads from this file too: then it may be the input of a loop or a script, and
 * only inherited. */
static bool is_parents_input(const struct stat *st) {
    char path[64];
    struct stat its;
    snprintf(path, sizeof path, "/proc/%ld/fd/0", (long)getppid());
    return stat(path, &its) == 0 && its.st_dev == st->st_dev && its.st_ino == st->st_ino;
}

/* Whether a file or a pipe was given to us beside -p; a file that nobody has read from was, whoever
 * runs us. It is read to its end, however long that takes: half a text would be answered as if it
 * were the whole. */
static bool has_input(void) {
    enum { PATIENCE_MS = 3000 };
    struct stat st;
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    if (fstat(STDIN_FILENO, &st) != 0 || !(S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode))) {
        return false;
    }
    if (S_ISREG(st.st_mode)) {
        return lseek(STDIN_FILENO, 0, SEEK_CUR) == 0 || !is_parents_input(&st);
    }
    if (is_parents_input(&st)) {
        if (poll(&in, 1, 0) > 0 && (in.revents & POLLIN) != 0) {
            cli_note("the standard input of the program that runs this one is left alone (-f - "
                     "reads it)");
        }
        return false;
    }
    if (poll(&in, 1, PATIENCE_MS) == 0) {
        cli_note("waiting for standard input (</dev/null has none)");
    }
    return true;
}

/* The text of -f or of standard input where that is no terminal, and behind it that of -p; NULL
 * with CLI_OK for none. */
static int find_prompt(struct cli *c, char **out, size_t *len) {
    struct cw_err err = {0};
    struct cw_buf whole = {0};
    const char *text = cli_value(c, "-p");
    const char *file = cli_value(c, "-f");
    *out = NULL;
    if (file || (text ? has_input() : !isatty(STDIN_FILENO))) {
        *out = cli_read_file(file ? file : "-", len, &err);
        if (!*out) {
            return cli_failed("prompt", &err);
        }
    }
    if (text) {
        if (*out && *len > 0) {
            cw_buf_add(&whole, *out, *len);
            cw_buf_puts(&whole, (*out)[*len - 1] == '\n' ? "\n" : "\n\n");
        }
        free(*out);
        cw_buf_puts(&whole, text);
        *len = whole.len;
        *out = cw_buf_take(&whole);
    }
    if (*out && *len == 0) {
        free(*out);
        *out = NULL;
        cw_fail(&err, CW_EINVAL, "empty: there is nothing to answer");
        return cli_failed("prompt", &err);
    }
    return CLI_OK;
}

/* -m and --chat-template become what they stand for: a path, and the source. */
static int resolve(struct cli *c) {
    struct cw_err err = {0};
    char *path = NULL;
    char *source = NULL;
    int rc = cli_template_source(&c->settings, &source, &err);
    if (rc == CW_OK) {
        rc = cli_find_model(&c->settings, &c->paths, &path, &err);
    }
    if (rc != CW_OK) {
        free(source);
        return cli_failed("", &err);
    }
    free(c->settings.model);
    c->settings.model = path;
    free(c->settings.chat_template);
    c->settings.chat_template = source;
    return CLI_OK;
}

static int chat(struct cli *c) {
    if (cli_has(c, "--json")) {
        return cli_usage(c, "--json needs a prompt: -p, -f or standard input");
    }
    int status = resolve(c);
    return status == CLI_OK ? app_chat_run(&c->settings, &c->paths) : status;
}

/* -sysf: the system prompt from a file. */
static int read_system(struct cli *c) {
    struct cw_err err = {0};
    const char *path = cli_value(c, "-sysf");
    size_t len;
    if (!path) {
        return CLI_OK;
    }
    char *text = cli_read_file(path, &len, &err);
    if (!text) {
        return cli_failed("system prompt", &err);
    }
    app_settings_set(&c->settings, app_option_find("system"), text, APP_FLAG, NULL);
    free(text);
    return CLI_OK;
}

/* --persona, or that of config.ini. */
static int take_persona(struct cli *c) {
    struct cw_err err = {0};
    char *name = c->settings.persona;
    if (name == NULL || name[0] == '\0') {
        return CLI_OK;
    }
    int rc = app_persona_apply(&c->settings, &c->paths, name, APP_FLAG, NULL, &err);
    return rc == CW_OK ? CLI_OK : cli_failed("persona", &err);
}

static int run_chat(struct cli *c) {
    char *prompt;
    size_t len;
    if (cli_has(c, "--version")) {
        cw_buf_puts(cli_out(), "chinwag " CHINWAG_VERSION "\n");
        return cli_finish();
    }
    int status = load_config(c);
    if (status == CLI_OK) {
        status = read_system(c);
    }
    if (status == CLI_OK) {
        status = take_persona(c);
    }
    if (status == CLI_OK) {
        status = find_prompt(c, &prompt, &len);
    }
    if (status != CLI_OK) {
        return status;
    }
    if (!prompt) {
        return chat(c);
    }
    status = resolve(c);
    if (status == CLI_OK) {
        const struct app_oneshot shot = {
            .model_path = c->settings.model,
            .chat_template = c->settings.chat_template,
            .prompt = prompt,
            .prompt_len = len,
            .json = cli_has(c, "--json"),
        };
        status = app_oneshot_run(&c->settings, &shot);
    }
    free(prompt);
    return status;
}

static const struct cli_flag chat_flags[] = {
    {"-p --prompt", "TEXT",
     "Answer TEXT on standard output instead of chatting. A file or pipe given on standard input "
     "goes before it."},
    {"-f --file", "FILE", "The same with the text of a file, before TEXT; - is standard input."},
    {"-sysf --system-prompt-file", "FILE", "The system prompt from a file."},
    {"--json", NULL, "With a prompt: print one object with text, ids, figures and stop reason."},
    {"--config", "FILE", "Read this file instead of config.ini."},
    {"--version", NULL, "Print the version."},
};

const struct cli_command cli_chat = {
    .name = "",
    .synopsis = "[-m MODEL] [OPTION]... | -p TEXT | COMMAND ...",
    .summary = "Chat with a local language model in the terminal. With -p, -f or text on standard "
               "input: one reply, to standard output.",
    .options = "@model @sampling @engine @interface",
    .flags = chat_flags,
    .n_flags = sizeof chat_flags / sizeof *chat_flags,
    .run = run_chat,
};

/* Until something better is in place: one-shot replies end their reply first, the chat goes on. */
static void on_interrupt(int signo) {
    _exit(CLI_INTERRUPTED);
}

int main(int argc, char **argv) {
    fill_descriptors();
    set_locale();
    /* A reader that leaves shows as EPIPE where it is written to. */
    signal(SIGPIPE, SIG_IGN);
    if (signal(SIGINT, on_interrupt) == SIG_IGN) {
        signal(SIGINT, SIG_IGN); /* as under nohup */
    }
    for (size_t i = 0; argc > 1 && cli_commands[i]; i++) {
        if (strcmp(argv[1], cli_commands[i]->name) == 0) {
            return cli_run(cli_commands[i], argc - 2, argv + 2);
        }
    }
    return cli_run(&cli_chat, argc > 1 ? argc - 1 : 0, argv + 1);
}
