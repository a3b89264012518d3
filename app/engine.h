/* SPDX-License-Identifier: MIT
 *
 * File, tokenizer, model and session opened together, for the commands that use the core without
 * the generator's thread.
 */
#ifndef APP_ENGINE_H
#define APP_ENGINE_H

#include "app/cli.h"

struct app_engine {
    char *path;
    struct cw_gguf *gguf;
    struct cw_tokenizer *tokenizer; /* with APP_ENGINE_TOKENIZER */
    struct cw_model *model;         /* with APP_ENGINE_MODEL */
    struct cw_session *session;     /* with APP_ENGINE_SESSION */
};

enum {
    APP_ENGINE_TOKENIZER = 1,
    APP_ENGINE_MODEL = 2,
    APP_ENGINE_SESSION = 4 | APP_ENGINE_MODEL,
};

/* Open the file that the settings mean and the asked-for parts. On failure nothing stays open. */
int app_engine_open(struct app_engine *e, const struct app_settings *s,
                    const struct app_paths *paths, unsigned parts, struct cw_err *err);
void app_engine_close(struct app_engine *e);

struct cw_model_options app_model_options(const struct app_settings *s);
/* What the generator is created with; borrows everything. chat_template NULL: the file's. */
struct cw_generator_options app_generator_options(const struct app_settings *s,
                                                  const char *model_path,
                                                  const char *chat_template);
struct cw_session_options app_session_options(const struct app_settings *s);

#endif
