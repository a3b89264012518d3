/* SPDX-License-Identifier: MIT
 *
 * The commands besides the chat, in the order in which --help shows them.
 */
#include "app/cli.h"

const struct cli_command *const cli_commands[] = {
    &cli_info,       &cli_tokenize, &cli_render,        &cli_logits,     &cli_generate,
    &cli_perplexity, &cli_bench,    &cli_conversations, &cli_export,     &cli_import,
    &cli_delete,     &cli_forget,   &cli_man,           &cli_completion, NULL,
};
