/* SPDX-License-Identifier: MIT
 *
 * `chinwag completion bash`: a script for bash made from the same tables as the parser. What a flag
 * completes follows from its row: the words of a choice, files where the value is called one,
 * nothing where it is a number or a text.
 */
#include <stdio.h>
#include <string.h>

#include "app/cli.h"
#include "app/words.h"

/* Ends in a blank each. No name of a table holds anything that a shell would read. */
static void add_words(struct cw_buf *to, const char *words) {
    for (struct cw_str word; app_words_next(&words, &word);) {
        cw_buf_printf(to, "%.*s ", (int)word.len, word.data);
    }
}

static void option_names(struct cw_buf *to, const struct app_option *o) {
    cw_buf_printf(to, "--%s ", o->name);
    add_words(to, o->flags);
    if (o->kind == APP_BOOL) {
        cw_buf_printf(to, "--no-%s ", o->name);
    }
}

/* "-m|--model": the pattern of a case. */
static void put_pattern(const char *names, const char *more) {
    bool first = true;
    for (int pass = 0; pass < 2; pass++) {
        const char *list = pass ? more : names;
        for (struct cw_str name; app_words_next(&list, &name);) {
            cw_buf_printf(cli_out(), "%s%.*s", first ? "        " : "|", (int)name.len, name.data);
            first = false;
        }
    }
    cw_buf_puts(cli_out(), ") ");
}

static bool is_file(const char *arg) {
    return strstr(arg, "FILE") || strcmp(arg, "MODEL") == 0;
}

/* One case that says what the value of a flag may be. */
static void put_value(const char *names, const char *more, const char *arg, const char *choices,
                      bool model) {
    put_pattern(names, more);
    if (choices) {
        cw_buf_printf(cli_out(), "words='%s' ;;\n", choices);
    } else if (model) {
        cw_buf_puts(cli_out(), "words=$(_chinwag_models) files=yes ;;\n");
    } else {
        cw_buf_printf(cli_out(), "words= %s;;\n", is_file(arg) ? "files=yes " : "");
    }
}

static void put_command(const struct cli_command *c) {
    struct cw_buf words = {0};
    if (!*c->name) {
        for (size_t i = 0; cli_commands[i]; i++) {
            add_words(&words, cli_commands[i]->name);
        }
    }
    cw_buf_printf(cli_out(), "    '%s')\n", c->name);
    cw_buf_puts(cli_out(), "        case $flag in\n");
    for (size_t i = 0; i < c->n_flags; i++) {
        add_words(&words, c->flags[i].names);
        if (c->flags[i].arg) {
            put_value(c->flags[i].names, "", c->flags[i].arg, NULL, false);
        }
    }
    for (size_t i = 0; i < app_n_options; i++) {
        const struct app_option *o = &app_options[i];
        if (cli_accepts(c, o)) {
            char name[64];
            snprintf(name, sizeof name, "--%s", o->name);
            option_names(&words, o);
            if (o->kind != APP_BOOL) {
                put_value(name, o->flags, o->arg ? o->arg : "", o->choices,
                          strcmp(o->name, "model") == 0);
            }
        }
    }
    add_words(&words, "--help");
    const char *operand = c->operand ? c->operand : "";
    bool shell = strcmp(operand, "SHELL") == 0;
    cw_buf_printf(cli_out(), "        *) words='%s%s' %s;;\n        esac ;;\n", words.data,
                  shell ? "bash" : "", is_file(operand) ? "files=yes " : "");
    cw_buf_free(&words);
}

static const char head[] =
    "# bash completion for chinwag, made by `chinwag completion bash`\n"
    "\n"
    "_chinwag_models() {\n"
    "    local file\n"
    "    for file in \"${XDG_DATA_HOME:-$HOME/.local/share}\"/chinwag/models/*.gguf; do\n"
    "        [ -e \"$file\" ] && file=${file##*/} && printf '%s\\n' \"${file%.gguf}\"\n"
    "    done\n"
    "}\n"
    "\n"
    "_chinwag() {\n"
    "    local cur=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD - 1]}\n"
    "    local command='' words='' files='' i\n"
    "    COMPREPLY=()\n"
    "    # bash makes words of its own of --flag=value\n"
    "    if [ \"$cur\" = = ]; then\n"
    "        cur=\n"
    "    elif [ \"$flag\" = = ]; then\n"
    "        flag=${COMP_WORDS[COMP_CWORD - 2]}\n"
    "    fi\n"
    "    if [ \"$COMP_CWORD\" -gt 1 ]; then\n"
    "        case ${COMP_WORDS[1]} in\n"
    "        ";
static const char middle[] = ") command=${COMP_WORDS[1]} ;;\n"
                             "        esac\n"
                             "    fi\n"
                             "    case $command in\n";
static const char tail[] =
    "    esac\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
    "    if [ -n \"$files\" ]; then\n"
    "        compopt -o filenames 2>/dev/null\n"
    "        mapfile -t -O \"${#COMPREPLY[@]}\" COMPREPLY < <(compgen -f -- \"$cur\")\n"
    "    fi\n"
    "}\n"
    "complete -F _chinwag chinwag\n";

static int run_completion(struct cli *c) {
    if (!c->operand || strcmp(c->operand, "bash") != 0) {
        return cli_usage(c, "%s: the one shell known is bash",
                         c->operand ? c->operand : "SHELL is missing");
    }
    cw_buf_puts(cli_out(), head);
    for (size_t i = 0; cli_commands[i]; i++) {
        cw_buf_printf(cli_out(), "%s%s", i ? "|" : "", cli_commands[i]->name);
    }
    cw_buf_puts(cli_out(), middle);
    put_command(&cli_chat);
    for (size_t i = 0; cli_commands[i]; i++) {
        put_command(cli_commands[i]);
    }
    cw_buf_puts(cli_out(), tail);
    return cli_finish();
}

const struct cli_command cli_completion = {
    .name = "completion",
    .synopsis = "bash",
    .summary = "Print a script that completes commands, options and their values in bash.",
    .operand = "SHELL",
    .options = "",
    .run = run_completion,
};
