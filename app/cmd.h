/* SPDX-License-Identifier: MIT
 *
 * What the files of commands share, and what the table in commands.c calls: cmd_run_NAME runs
 * /NAME with the text behind it, cmd_complete_NAME offers what its argument could be. Main thread.
 */
#ifndef APP_CMD_H
#define APP_CMD_H

#include "app/app_impl.h"
#include "app/commands.h"
#include "app/words.h"

/* The first word of *s, which moves behind it and the blanks that follow. */
struct cw_str cmd_take_word(const char **s);
/* The arguments without blanks at the end. Caller must free. */
char *cmd_trimmed(const char *args);
/* A row of the option table by name, also by the long spelling of its flag; NULL: none. */
const struct app_option *cmd_find_option(struct cw_str word);
/* Change a setting as the person's own doing, show it, or say why not. */
void cmd_set_option(struct app *a, const struct app_option *o, const char *value);
void cmd_show_setting(struct app *a, const struct app_option *o);
void cmd_page_settings(struct app *a);
/* A setting as a line of a page: its value, and in brackets where it came from and `more`. */
void cmd_setting_line(const struct app *a, struct ui_overlay *page, const struct app_option *o,
                      const char *value, const char *origin, const char *more);
/* There is no such command or setting (`what`): the one that was likely meant, or where they are
 * listed. */
void cmd_unknown(struct app *a, const char *what, const char *slash, const struct app_nearest *near,
                 const char *list);
/* Where settings changed in a reply, as lines of a page. */
void cmd_changes(struct ui_overlay *page, const struct chat_message *m);
/* How long a reply took, and how it ended. */
void cmd_figures(struct ui_overlay *page, const struct chat_message *m);
/* A line of a page. */
void cmd_line(struct ui_overlay *page, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* cmd_chat.c */
void cmd_run_exit(struct app *a, const char *args);
void cmd_run_help(struct app *a, const char *args);
void cmd_run_new(struct app *a, const char *args);
void cmd_run_stop(struct app *a, const char *args);

/* cmd_keep.c */
void cmd_run_list(struct app *a, const char *args);
void cmd_run_load(struct app *a, const char *args);
void cmd_run_rename(struct app *a, const char *args);
void cmd_run_delete(struct app *a, const char *args);
void cmd_run_undelete(struct app *a, const char *args);
void cmd_run_private(struct app *a, const char *args);
void cmd_run_export(struct app *a, const char *args);
void cmd_complete_export(const struct app *a, const char *line, size_t begin,
                         struct ui_candidates *out);

/* cmd_tree.c */
void cmd_run_regen(struct app *a, const char *args);
void cmd_run_continue(struct app *a, const char *args);
void cmd_run_undo(struct app *a, const char *args);
void cmd_run_redo(struct app *a, const char *args);
void cmd_run_edit(struct app *a, const char *args);
void cmd_run_fork(struct app *a, const char *args);
void cmd_run_tree(struct app *a, const char *args);
void cmd_run_restore(struct app *a, const char *args);
void cmd_run_replay(struct app *a, const char *args);
void cmd_run_why(struct app *a, const char *args);
void cmd_run_persona(struct app *a, const char *args);
void cmd_run_prompt(struct app *a, const char *args);
void cmd_complete_persona(const struct app *a, const char *line, size_t begin,
                          struct ui_candidates *out);
void cmd_complete_prompt(const struct app *a, const char *line, size_t begin,
                         struct ui_candidates *out);
/* Take a persona; false: there is none of that name. */
bool cmd_use_persona(struct app *a, const char *name);

/* cmd_settings.c */
void cmd_run_set(struct app *a, const char *args);
void cmd_run_system(struct app *a, const char *args);
void cmd_run_preset(struct app *a, const char *args);
void cmd_complete_preset(const struct app *a, const char *line, size_t begin,
                         struct ui_candidates *out);
void cmd_complete_set(const struct app *a, const char *line, size_t begin,
                      struct ui_candidates *out);

/* cmd_show.c */
void cmd_run_show(struct app *a, const char *args);
void cmd_run_stats(struct app *a, const char *args);
void cmd_complete_show(const struct app *a, const char *line, size_t begin,
                       struct ui_candidates *out);

/* cmd_files.c */
void cmd_run_read(struct app *a, const char *args);
void cmd_run_glob(struct app *a, const char *args);
void cmd_run_copy(struct app *a, const char *args);
void cmd_run_save(struct app *a, const char *args);
/* Write all of it, or errno says why not. Without `over` a file that is there stays as it is. */
bool cmd_write_file(const char *path, bool over, const struct cw_buf *text);
void cmd_complete_copy(const struct app *a, const char *line, size_t begin,
                       struct ui_candidates *out);
void cmd_complete_file(const struct app *a, const char *line, size_t begin,
                       struct ui_candidates *out);

#endif
