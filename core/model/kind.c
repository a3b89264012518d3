/* SPDX-License-Identifier: MIT
 *
 * What a GGUF file is: a model of a supported architecture, or one of the many other things that
 * come in such files, each of which is refused by a line that says what it is. */
#include "core/model/internal.h"

#include <stddef.h>

struct kind {
    const char *name, *what;
};

/* By general.type; "model" and no type at all are what is wanted. */
static const struct kind types[] = {
    {"adapter", "is an adapter (LoRA), which changes a model and is none itself"},
    {"mmproj", "is the vision or audio part of a model (mmproj), not its language model"},
    {"imatrix", "is an importance matrix, made for quantising a model, not a model"},
    {"controlvector", "is a control vector, which steers a model and is none itself"},
};

/* Architectures that are no chat models, so that nobody waits for their support. */
static const struct kind others[] = {
    {"clip", "the vision or audio part of a model, mmproj"},
    {"controlvector", "a control vector, which steers a model and is none itself"},
    {"bert", "an embedding model"},
    {"modern-bert", "an embedding model"},
    {"nomic-bert", "an embedding model"},
    {"nomic-bert-moe", "an embedding model"},
    {"neo-bert", "an embedding model"},
    {"jina-bert-v2", "an embedding model"},
    {"jina-bert-v3", "an embedding model"},
    {"eurobert", "an embedding model"},
    {"gemma-embedding", "an embedding model"},
    {"llama-embed", "an embedding model"},
    {"t5encoder", "an embedding model"},
    {"dream", "a diffusion language model"},
    {"llada", "a diffusion language model"},
    {"llada-moe", "a diffusion language model"},
    {"rnd1", "a diffusion language model"},
    {"wavtokenizer-dec", "an audio decoder"},
    {"whisper", "a speech recogniser"},
    {"flux", "an image model"},
    {"sd1", "an image model"},
    {"sd3", "an image model"},
    {"sdxl", "an image model"},
    {"qwen_image", "an image model"},
    {"wan", "a video model"},
};

static const char *find_kind(const struct kind *list, size_t n, struct cw_str name) {
    for (size_t i = 0; i < n; i++) {
        if (cw_str_eq(name, list[i].name)) {
            return list[i].what;
        }
    }
    return NULL;
}

int cw_arch_of(const struct cw_arch **out, const struct cw_gguf *g, struct cw_err *err) {
    struct cw_str name, type;
    const char *what = cw_gguf_str(g, "general.type", &type, NULL) == CW_OK
                           ? find_kind(types, sizeof types / sizeof *types, type)
                           : NULL;
    if (what != NULL) {
        return cw_fail(err, CW_EUNSUP, "%s", what);
    }
    int rc = cw_gguf_str(g, "general.architecture", &name, err);
    if (rc == CW_ENOENT) {
        return cw_fail(err, CW_EFORMAT, "key 'general.architecture' is missing");
    }
    if (rc != CW_OK) {
        return rc;
    }
    *out = cw_arch_find(name);
    if (*out == NULL) {
        char list[320];
        cw_arch_list(list, sizeof list);
        what = find_kind(others, sizeof others / sizeof *others, name);
        return cw_fail(err, CW_EUNSUP, "architecture '%.*s'%s%s%s is not supported (these are: %s)",
                       (int)(name.len < 32 ? name.len : 32), name.data, what != NULL ? " (" : "",
                       what != NULL ? what : "", what != NULL ? ")" : "", list);
    }
    if (cw_gguf_n_tensors(g) == 0) {
        return cw_fail(err, CW_EUNSUP, "holds no tensors: a vocabulary at most, not a model");
    }
    return CW_OK;
}
