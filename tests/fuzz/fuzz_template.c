/* SPDX-License-Identifier: MIT
 *
 * libFuzzer target: a template and a conversation, separated by bytes 0x1f in the input. Whatever
 * they are, parsing and rendering end without touching memory that is not theirs, and the spans of
 * a prompt cover it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/template.h"
#include "core/text/template/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_MESSAGES = 8, SEPARATOR = 0x1f };

/* The part of *rest up to the next separator. */
static struct cw_str next_part(struct cw_str *rest) {
    const char *end = rest->len > 0 ? memchr(rest->data, SEPARATOR, rest->len) : NULL;
    struct cw_str part = {rest->data, end != NULL ? (size_t)(end - rest->data) : rest->len};
    size_t used = part.len + (end != NULL);
    rest->data += used;
    rest->len -= used;
    return part;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const roles[] = {"user", "assistant", "system"};
    struct cw_str rest = {(const char *)data, size};
    struct cw_str source = next_part(&rest);
    struct cw_message messages[MAX_MESSAGES] = {{0}};
    struct cw_template_input in = {.messages = messages, .bos = "<s>", .eos = "</s>"};
    for (; in.n_messages < MAX_MESSAGES && rest.len > 0; in.n_messages++) {
        struct cw_str content = next_part(&rest);
        messages[in.n_messages] = (struct cw_message){
            .role = roles[in.n_messages % 3], .content = content.data, .len = content.len};
    }
    in.add_generation_prompt = size % 2 == 0;
    struct cw_template *t;
    struct cw_err err;
    if (cw_template_create(&t, source.data, source.len, &err) != CW_OK) {
        return 0;
    }
    struct cw_jlimits limits = cw_jlimits_for(&in);
    limits.steps = 50000;
    struct cw_prompt prompt;
    if (cw_template_render_within(t, &in, &limits, &prompt, NULL, &err) == CW_OK) {
        size_t at = 0;
        for (size_t i = 0; i < prompt.n_spans; i++) {
            if (prompt.spans[i].begin != at || prompt.spans[i].end <= at ||
                prompt.spans[i].message < -1 || prompt.spans[i].message >= (int32_t)in.n_messages) {
                abort();
            }
            at = prompt.spans[i].end;
        }
        if (at != prompt.len) {
            abort();
        }
        cw_prompt_free(&prompt);
    }
    cw_template_destroy(t);
    return 0;
}
