/* SPDX-License-Identifier: MIT
 *
 * The table of commands. Names follow the field (llama-cli, Ollama): who knows one of them finds
 * the same words here. What they do stands in the cmd_*.c files, by concept.
 */
#include "app/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/cmd.h"
#include "ui/keymap.h"

enum { MAX_WORD = 64 };

/* ---- words ---------------------------------------------------------------------------------- */

struct cw_str cmd_take_word(const char **s) {
    const char *start = *s + strspn(*s, " \t\n");
    size_t n = strcspn(start, " \t\n");
    *s = start + n + strspn(start + n, " \t\n");
    return (struct cw_str){start, n};
}

char *cmd_trimmed(const char *args) {
    size_t n = strlen(args);
    while (n > 0 && strchr(" \t\n", args[n - 1]) != NULL) {
        n--;
    }
    return cw_strndup(args, n);
}

/* ---- the table ------------------------------------------------------------------------------ */

static const struct app_command commands[] = {
    {"help ?", "", "Show the keys and commands.", cmd_run_help, NULL},
    {"exit bye quit", "", "Leave.", cmd_run_exit, NULL},
    {"new clear", "", "Begin a new conversation; the system prompt stays.", cmd_run_new, NULL},
    {"regen retry", "[N]",
     "Ask for another reply, or N at once to pick from; the old one stays as a branch.",
     cmd_run_regen, NULL},
    {"continue", "", "Let the last reply go on where it ended.", cmd_run_continue, NULL},
    {"undo", "", "Undo the last step: a question goes back into the input line.", cmd_run_undo,
     NULL},
    {"redo", "", "Do again what was undone.", cmd_run_redo, NULL},
    {"edit", "[N [TEXT]]",
     "Change message N, of either side, as a branch; without TEXT in the input line.", cmd_run_edit,
     NULL},
    {"fork", "", "Go on in a copy of this conversation.", cmd_run_fork, NULL},
    {"tree", "[N]", "Show the branches; Enter or N goes to one.", cmd_run_tree, NULL},
    {"restore", "", "Bring back what has left the context.", cmd_run_restore, NULL},
    {"replay", "[N]", "Draw reply N again from what was recorded, and compare.", cmd_run_replay,
     NULL},
    {"why", "[N]", "Show what message N was made with.", cmd_run_why, NULL},
    {"list", "[WORDS]", "List the conversations that are kept, or search them.", cmd_run_list,
     NULL},
    {"load", "[NAME]",
     "Open a conversation by its number in the list or its name; alone: choose one.", cmd_run_load,
     NULL},
    {"rename", "[TITLE]", "Give the conversation a title.", cmd_run_rename, NULL},
    {"delete", "", "Delete this conversation; /undelete brings it back until the end.",
     cmd_run_delete, NULL},
    {"undelete", "", "Bring back the conversation that was deleted last.", cmd_run_undelete, NULL},
    {"export", "[FORMAT] [over] FILE",
     "Write the conversation to a file: md, json (complete, to be imported), jsonl, txt or html.",
     cmd_run_export, cmd_complete_export},
    {"private", "[on|off]", "Keep nothing from here on.", cmd_run_private, NULL},
    {"persona", "[NAME]", "Take the settings of a persona, or list them.", cmd_run_persona,
     cmd_complete_persona},
    {"prompt", "[NAME [KEY=VALUE ...]]",
     "Fill a prompt of your own into the input line, or list them.", cmd_run_prompt,
     cmd_complete_prompt},
    {"stop", "", "Stop the reply and keep what came.", cmd_run_stop, NULL},
    {"set", "[NAME [VALUE]]", "Change a setting; without VALUE show it, without NAME list all.",
     cmd_run_set, cmd_complete_set},
    {"show", "[info|settings|system|template|NAME]", "Show the model, the settings or one of them.",
     cmd_run_show, cmd_complete_show},
    {"system", "[NAME|TEXT]", "Set the system prompt, or take a persona; alone: show it.",
     cmd_run_system, cmd_complete_persona},
    {"stats", "", "Show the figures of the last reply.", cmd_run_stats, NULL},
    {"preset", "NAME", "Set temperature and top-p together: extract, chat or creative.",
     cmd_run_preset, cmd_complete_preset},
    {"copy", "[N|code [N]]",
     "Copy the last reply to the clipboard; N: message N; code: the last, or N-th last, code "
     "block.",
     cmd_run_copy, cmd_complete_copy},
    {"save", "[reply|over] FILE",
     "Write the conversation to a file as Markdown; reply: only the last one; over: also over a "
     "file that is there.",
     cmd_run_save, cmd_complete_file},
    {"glob", "PATTERN", "Attach every text file that matches, with what they cost together.",
     cmd_run_glob, cmd_complete_file},
    {"read", "FILE", "Attach the text of a file to the message, with what it costs in tokens.",
     cmd_run_read, cmd_complete_file},
};

enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

const struct app_command *app_command_at(size_t i) {
    return i < N_COMMANDS ? &commands[i] : NULL;
}

const struct app_command *app_command_find(const char *name, size_t n) {
    for (size_t i = 0; i < N_COMMANDS; i++) {
        if (app_words_hold(commands[i].names, name, n, NULL)) {
            return &commands[i];
        }
    }
    return NULL;
}

bool app_is_command(const char *line) {
    if (line[0] != '/') {
        return false;
    }
    size_t n = strcspn(line, " \t\n");
    if (app_command_find(line + 1, n - 1) != NULL) {
        return true;
    }
    char *path = cw_strndup(line, n);
    struct stat st;
    bool is_file = n > 1 && stat(path, &st) == 0;
    free(path);
    return !is_file;
}

void cmd_unknown(struct app *a, const char *what, const char *slash, const struct app_nearest *near,
                 const char *list) {
    char shown[80];
    size_t n = near->word.len;
    cw_printable(shown, sizeof shown, near->word.data, n < 40 ? n : 40);
    if (near->name.data != NULL) {
        app_hint(a, true, "there is no %s %s%s: did you mean %s%.*s?", what, slash, shown, slash,
                 (int)near->name.len, near->name.data);
    } else {
        app_hint(a, true, "there is no %s %s%s: %s lists them", what, slash, shown, list);
    }
}

static void unknown_command(struct app *a, struct cw_str word) {
    struct app_nearest near = {.word = word};
    for (size_t i = 0; i < N_COMMANDS; i++) {
        app_nearest_try(&near, commands[i].names);
    }
    cmd_unknown(a, "command", "/", &near, "/help");
}

void app_command_run(struct app *a, const char *line) {
    const char *args = line + 1;
    struct cw_str name = {args, strcspn(args, " \t\n")};
    args += name.len;
    args += strspn(args, " \t\n");
    const struct app_command *c = app_command_find(name.data, name.len);
    if (c == NULL) {
        unknown_command(a, name);
    } else if (c->args[0] == '\0' && *args != '\0') {
        app_hint(a, true, "/%.*s takes no argument", (int)name.len, name.data);
    } else {
        c->run(a, args);
    }
    a->dirty = true;
}

void app_complete(void *app, const char *line, size_t begin, size_t end,
                  struct ui_candidates *out) {
    const struct app *a = app;
    if (line[0] != '/') {
        out->files = true;
        return;
    }
    if (begin == 0) {
        for (size_t i = 0; i < N_COMMANDS; i++) {
            const char *names = commands[i].names;
            for (struct cw_str name; app_words_next(&names, &name);) {
                char word[MAX_WORD];
                snprintf(word, sizeof word, "/%.*s", (int)name.len, name.data);
                ui_candidates_add(out, word);
            }
        }
        return;
    }
    size_t n = strcspn(line, " \t\n");
    const struct app_command *c = app_command_find(line + 1, n - 1);
    if (c == NULL) {
        out->files = true;
    } else if (c->complete != NULL) {
        c->complete(a, line, begin, out);
    }
}

static void keys_of_lines(struct ui_overlay *page) {
    ui_overlay_line(page, "Enter", "send the line; during a reply it waits for its turn");
    ui_overlay_line(page, "Ctrl+C", "stop the reply; without one, forget what was to be sent");
    ui_overlay_line(page, "Ctrl+D", "leave");
    ui_overlay_line(page, "", "");
    ui_overlay_line(page, "",
                    "The terminal takes at most 4095 bytes a line, also between two \"\"\": a "
                    "longer line is refused. /read FILE takes any text.");
}

static void keys_of_screen(struct ui_overlay *page) {
    ui_overlay_line(page, "Enter", "send; during a reply it waits for its turn");
    for (int i = UI_ACT_NONE + 1; i < UI_N_ACTIONS; i++) {
        char keys[160];
        ui_keymap_keys((enum ui_action)i, keys, sizeof keys);
        ui_overlay_line(page, keys[0] != '\0' ? keys : "(no key)",
                        ui_action_help((enum ui_action)i));
    }
    ui_overlay_line(page, "", "");
    ui_overlay_line(page, "",
                    "All other keys are readline's, with ~/.inputrc: Tab completes, Ctrl+R "
                    "searches what was sent before, Up and Down go through it.");
}

void app_show_help(struct app *a) {
    struct ui_overlay *page = ui_overlay_create("Help");
    ui_overlay_heading(page, "Keys");
    if (a->plain != NULL) {
        keys_of_lines(page);
    } else {
        keys_of_screen(page);
    }
    ui_overlay_line(page, "", "");
    ui_overlay_heading(page, "Commands");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        struct cw_buf key = {0};
        const char *names = commands[i].names;
        for (struct cw_str name; app_words_next(&names, &name);) {
            cw_buf_printf(&key, "%s/%.*s", key.len > 0 ? " " : "", (int)name.len, name.data);
        }
        if (commands[i].args[0] != '\0') {
            cw_buf_printf(&key, " %s", commands[i].args);
        }
        ui_overlay_line(page, key.data, commands[i].help);
        cw_buf_free(&key);
    }
    ui_overlay_line(page, "", "");
    ui_overlay_line(page, "",
                    "A line that ends in \\ goes on with the next; \"\"\" opens and closes a "
                    "message of many lines. A slash before the name of a file is text.");
    app_show_page(a, page);
}
