/* SPDX-License-Identifier: MIT
 *
 * `chinwag man`: the manual page chinwag(1) in roff (man macros), made from the tables that the
 * program runs by: options, commands and their flags, keys, slash commands. Only what no table
 * holds is written here.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "app/cli.h"
#include "app/commands.h"
#include "app/words.h"
#include "ui/keymap.h"

/* ---- roff ----------------------------------------------------------------------------------- */

/* Text as it stands: backslashes, hyphens as they are typed, and no request by accident. */
static void put(const char *text) {
    struct cw_buf *to = cli_out();
    if (*text == '.' || *text == '\'') {
        cw_buf_puts(to, "\\&");
    }
    for (; *text; text++) {
        switch (*text) {
        case '\\':
            cw_buf_puts(to, "\\e");
            break;
        case '-':
            cw_buf_puts(to, "\\-");
            break;
        case '\'':
            cw_buf_puts(to, "\\(aq");
            break;
        case '`':
            cw_buf_puts(to, "\\(ga");
            break;
        case '^':
            cw_buf_puts(to, "\\(ha");
            break;
        case '~':
            cw_buf_puts(to, "\\(ti");
            break;
        case '\n':
            cw_buf_puts(to, "\n.br\n");
            break;
        default:
            cw_buf_putc(to, *text);
        }
    }
}

static void font(char name, const char *text) {
    cw_buf_printf(cli_out(), "\\f%c", name);
    put(text);
    cw_buf_puts(cli_out(), "\\fR");
}

static void line(const char *text) {
    put(text);
    cw_buf_putc(cli_out(), '\n');
}

static void section(const char *macro, const char *title) {
    cw_buf_printf(cli_out(), ".%s \"", macro);
    put(title);
    cw_buf_puts(cli_out(), "\"\n");
}

/* The words of a list in bold, with commas. */
static void put_names(const char *names, const char *before, bool first) {
    for (struct cw_str name; app_words_next(&names, &name);) {
        char word[64];
        snprintf(word, sizeof word, "%s%.*s", before, (int)name.len, name.data);
        if (!first) {
            cw_buf_puts(cli_out(), ", ");
        }
        font('B', word);
        first = false;
    }
}

static void put_arg(const char *arg) {
    if (arg && *arg) {
        cw_buf_putc(cli_out(), ' ');
        font('I', arg);
    }
    cw_buf_putc(cli_out(), '\n');
}

/* ---- options -------------------------------------------------------------------------------- */

static void put_flag(const struct cli_flag *f) {
    cw_buf_puts(cli_out(), ".TP\n");
    put_names(f->names, "", true);
    put_arg(f->arg);
    line(f->help);
}

static void put_option(const struct app_option *o) {
    char name[64];
    bool on = o->kind == APP_BOOL && strcmp(o->builtin, "on") == 0;
    snprintf(name, sizeof name, "--%s%s", on ? "[no-]" : "", o->name);
    cw_buf_puts(cli_out(), ".TP\n");
    put_names(name, "", true);
    put_names(o->flags, "", false);
    put_arg(o->arg);
    put(o->help);
    if (o->choices) {
        cw_buf_puts(cli_out(), " One of ");
        put_names(o->choices, "", true);
        cw_buf_putc(cli_out(), '.');
    }
    if (*o->builtin && strcmp(o->builtin, "off") != 0) {
        cw_buf_puts(cli_out(), " Default: ");
        put(o->builtin);
        cw_buf_putc(cli_out(), '.');
    }
    cw_buf_putc(cli_out(), '\n');
}

static void put_options(void) {
    section("SH", "OPTIONS");
    for (size_t i = 0; i < cli_chat.n_flags; i++) {
        put_flag(&cli_chat.flags[i]);
    }
    static const struct cli_flag help = {"-h --help", NULL, "Show a short help."};
    put_flag(&help);
    cw_buf_puts(cli_out(), ".PP\n");
    line("The options that follow may also stand in config.ini, by their long names, and most of "
         "them can be changed during a chat by /set. Each value is the one given last in this "
         "order: built in, recommended by the model's file, config.ini, command line, changed in "
         "the chat.");
    for (const char *const *group = app_option_groups; *group; group++) {
        char title[32];
        snprintf(title, sizeof title, "%c%s", toupper((unsigned char)**group), *group + 1);
        section("SS", title);
        for (size_t i = 0; i < app_n_options; i++) {
            if (strcmp(app_options[i].group, *group) == 0) {
                put_option(&app_options[i]);
            }
        }
    }
}

/* ---- commands, keys ------------------------------------------------------------------------- */

/* "Takes the options model, pre and ctx, and those of the group engine." */
static void put_accepted(const struct cli_command *c) {
    size_t n = 0;
    for (size_t i = 0; i < app_n_options; i++) {
        if (cli_accepts(c, &app_options[i])) {
            char name[64];
            snprintf(name, sizeof name, "--%s", app_options[i].name);
            cw_buf_puts(cli_out(), n++ ? ", " : ".PP\nOptions of the list above that it takes: ");
            font('B', name);
        }
    }
    cw_buf_puts(cli_out(), n ? ".\n" : "");
}

static void put_commands(void) {
    section("SH", "COMMANDS");
    for (size_t i = 0; cli_commands[i]; i++) {
        const struct cli_command *c = cli_commands[i];
        char title[64];
        snprintf(title, sizeof title, "chinwag %s", c->name);
        section("SS", title);
        font('B', title);
        cw_buf_putc(cli_out(), ' ');
        line(c->synopsis);
        cw_buf_puts(cli_out(), ".PP\n");
        line(c->summary);
        for (size_t k = 0; k < c->n_flags; k++) {
            put_flag(&c->flags[k]);
        }
        put_accepted(c);
    }
}

static void put_keys(void) {
    section("SH", "KEYS");
    line("These are the keys of the chat; the section [keys] of config.ini gives an action others. "
         "All other keys belong to the input line, which is readline's: see its manual for them, "
         "for ~/.inputrc and for the vi mode. Enter sends the message.");
    for (int action = UI_ACT_NONE + 1; action < UI_N_ACTIONS; action++) {
        char keys[200];
        ui_keymap_keys((enum ui_action)action, keys, sizeof keys);
        if (*keys) {
            cw_buf_puts(cli_out(), ".TP\n");
            font('B', keys);
            cw_buf_puts(cli_out(), " (");
            font('I', ui_action_name((enum ui_action)action));
            cw_buf_puts(cli_out(), ")\n");
            line(ui_action_help((enum ui_action)action));
        }
    }
}

static void put_slash_commands(void) {
    section("SH", "SLASH COMMANDS");
    line("A line of the chat that begins with a slash is a command, unless its first word is the "
         "name of a file.");
    for (size_t i = 0; app_command_at(i); i++) {
        const struct app_command *c = app_command_at(i);
        cw_buf_puts(cli_out(), ".TP\n");
        put_names(c->names, "/", true);
        put_arg(c->args);
        line(c->help);
    }
}

/* ---- what no table holds -------------------------------------------------------------------- */

struct entry {
    const char *term, *text;
};

static void put_entries(const char *title, const struct entry *entries, size_t n) {
    section("SH", title);
    for (size_t i = 0; i < n; i++) {
        cw_buf_puts(cli_out(), ".TP\n");
        font('B', entries[i].term);
        cw_buf_putc(cli_out(), '\n');
        line(entries[i].text);
    }
}

static const struct entry files[] = {
    {"$XDG_CONFIG_HOME/chinwag/config.ini", "Settings, a line \"name = value\" each."},
    {"$XDG_CONFIG_HOME/chinwag/personas, prompts",
     "Settings and texts of your own: personas/NAME.ini for --persona and /persona, "
     "prompts/NAME.txt for /prompt."},
    {"$XDG_DATA_HOME/chinwag/models", "Models that -m finds by name."},
    {"$XDG_DATA_HOME/chinwag/conversations.db", "What was said, unless it was private."},
    {"$XDG_STATE_HOME/chinwag/history", "What was written in the input line."},
    {"$XDG_CACHE_HOME/chinwag",
     "Snapshots that spare reading a conversation anew; they may be removed at any time."},
};
static const struct entry environment[] = {
    {"NO_COLOR", "Switches colours off."},
    {"VISUAL, EDITOR", "The editor for long messages."},
    {"XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME, XDG_CACHE_HOME",
     "Where the files are; by default ~/.config, ~/.local/share, ~/.local/state and ~/.cache."},
};
static const struct entry statuses[] = {
    {"0", "Done."},
    {"1", "Failed; one line on standard error says why."},
    {"2", "Wrong usage."},
    {"130", "Interrupted."},
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

static int run_man(struct cli *c) {
    cw_buf_puts(cli_out(), ".TH CHINWAG 1 \"\" \"chinwag " CHINWAG_VERSION "\" \"User Commands\"\n"
                           ".nh\n.ad l\n");
    section("SH", "NAME");
    cw_buf_puts(cli_out(), "chinwag \\- chat with a local language model in the terminal\n");
    section("SH", "SYNOPSIS");
    font('B', "chinwag");
    cw_buf_putc(cli_out(), ' ');
    line(cli_chat.synopsis);
    for (size_t i = 0; cli_commands[i]; i++) {
        cw_buf_puts(cli_out(), ".br\n");
        font('B', "chinwag ");
        font('B', cli_commands[i]->name);
        cw_buf_putc(cli_out(), ' ');
        line(cli_commands[i]->synopsis);
    }
    section("SH", "DESCRIPTION");
    line(cli_chat.summary);
    cw_buf_puts(cli_out(), ".PP\n");
    line("Models are GGUF files and run on the CPU. A quantised file gives the same reply for the "
         "same seed on every machine and with any number of threads; float files do with --exact.");
    put_options();
    put_commands();
    put_keys();
    put_slash_commands();
    put_entries("FILES", files, COUNT(files));
    put_entries("ENVIRONMENT", environment, COUNT(environment));
    put_entries("EXIT STATUS", statuses, COUNT(statuses));
    return cli_finish();
}

const struct cli_command cli_man = {
    .name = "man",
    .synopsis = "",
    .summary = "Print the manual page, in roff: chinwag man | man -l -",
    .options = "",
    .run = run_man,
};
