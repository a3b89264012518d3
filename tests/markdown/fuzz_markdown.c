/* SPDX-License-Identifier: MIT
 *
 * Any bytes, in pieces and at a width that the first ones choose, against the same bytes at once:
 * nothing may crash, and the lines must be equal. Built with -Dfuzzing=true.
 */
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "md_text.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    setlocale(LC_ALL, "C.UTF-8");
    return 0;
}

static void render(const char *s, size_t n, size_t piece, int width,
                   const struct md_options *options, struct cw_buf *out) {
    struct md *m = md_create(options);
    size_t n_settled = 0;
    for (size_t i = 0; i < n; i += piece) {
        md_append(m, s + i, piece < n - i ? piece : n - i);
        md_layout(m, width);
        if (md_n_settled(m) < n_settled || md_n_settled(m) > md_n_lines(m)) {
            abort();
        }
        n_settled = md_n_settled(m);
        for (size_t k = n_settled; k < md_n_lines(m); k++) {
            cw_buf_clear(out);
            md_text_line(m, k, false, out);
        }
    }
    md_finish(m);
    md_layout(m, width);
    cw_buf_clear(out);
    md_text_lines(m, md_n_lines(m), true, out);
    md_destroy(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) {
        return 0;
    }
    int width = data[0] + 1;
    size_t piece = data[1] % 16 + 1;
    struct md_options options = {.join_lines = (data[1] & 64) != 0,
                                 .show_urls = (data[1] & 128) != 0};
    struct cw_buf pieces = {0}, whole = {0};
    render((const char *)data + 2, size - 2, piece, width, &options, &pieces);
    render((const char *)data + 2, size - 2, size, width, &options, &whole);
    if (pieces.len != whole.len ||
        (whole.len > 0 && memcmp(pieces.data, whole.data, whole.len) != 0)) {
        abort();
    }
    cw_buf_free(&pieces);
    cw_buf_free(&whole);
    return 0;
}
