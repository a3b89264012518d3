/* SPDX-License-Identifier: MIT
 *
 * What a token costs and what the machine gives: a speed says little until it is read against the
 * limit that binds it. Decoding reads every weight and the cache once a token, so it is bound by
 * reads; a prompt shares the weights among its tokens, so it is bound by multiply-adds.
 */
#include "app/cli_bench.h"

#include <stdio.h>

#include "core/compute/measure.h"
#include "core/model/internal.h"

enum { MANY_TOKENS = 512 };

/* ---- what a token costs --------------------------------------------------------------------- */

static void add_weight(struct bench_cost *c, const struct cw_weight *w, double times) {
    if (w->data) {
        c->weight_bytes += times * (double)w->rows * (double)w->row_bytes;
        c->macs += times * (double)w->rows * (double)w->cols;
    }
}

struct bench_cost bench_cost(const struct cw_model *m) {
    struct bench_cost c = {0, 0};
    for (int i = 0; i < m->hp.n_layers; i++) {
        const struct cw_layer *l = &m->layers[i];
        const struct cw_weight *dense[] = {&l->q,    &l->k,  &l->v,    &l->out,
                                           &l->gate, &l->up, &l->down, &l->router};
        for (size_t k = 0; k < sizeof dense / sizeof *dense; k++) {
            add_weight(&c, dense[k], 1);
        }
        if (l->experts_up) {
            add_weight(&c, &l->experts_up[0], m->hp.n_used);
            add_weight(&c, &l->experts_down[0], m->hp.n_used);
            if (l->experts_gate) {
                add_weight(&c, &l->experts_gate[0], m->hp.n_used);
            }
        }
    }
    double layers = c.macs;
    add_weight(&c, &m->head, 1);
    c.macs = layers; /* of a prompt only the last token goes through the head */
    return c;
}

double bench_kv_bytes(const struct cw_model *m, int kv, double depth) {
    double chunk = (double)cw_kv_layer_bytes(256, m->hp.n_kv_heads, m->hp.head_k, m->hp.head_v, kv);
    double sum = 0;
    for (int i = 0; i < m->hp.n_layers; i++) {
        double cells = depth + 1;
        if (m->layers[i].local && m->hp.window > 0 && cells > m->hp.window) {
            cells = m->hp.window;
        }
        sum += cells * chunk / 256;
    }
    return sum;
}

/* ---- what the machine gives ----------------------------------------------------------------- */

/* The type that most bytes of the layers' matrices have. */
static enum cw_type main_type(const struct cw_model *m) {
    double bytes[64] = {0};
    enum cw_type best = CW_F32;
    for (int i = 0; i < m->hp.n_layers; i++) {
        const struct cw_layer *l = &m->layers[i];
        const struct cw_weight *some[] = {&l->q, &l->out, &l->up, &l->down};
        for (size_t k = 0; k < sizeof some / sizeof *some; k++) {
            const struct cw_weight *w = some[k];
            if (w->data && (size_t)w->type < sizeof bytes / sizeof *bytes) {
                bytes[w->type] += (double)w->rows * (double)w->row_bytes;
                best = bytes[w->type] > bytes[best] ? w->type : best;
            }
        }
    }
    return best;
}

int bench_machine(const struct bench *b, struct bench_machine *m, struct json_object *out,
                  struct cw_err *err) {
    const struct cw_model_info *info = cw_model_get_info(b->e.model);
    const struct cw_compute_options opt = {
        .n_threads = info->n_threads, .isa = info->isa, .blas = info->float_file};
    struct cw_compute *c = NULL;
    int rc = cw_compute_create(&c, &opt, err);
    if (rc != CW_OK) {
        return rc;
    }
    /* A model that fits the cache is read from there, a larger one from memory. */
    size_t beyond = 4 * cw_measure_cache_bytes();
    size_t own = (size_t)bench_cost(b->e.model).weight_bytes;
    size_t bytes = own < beyond ? own : beyond;
    *m = (struct bench_machine){
        .read = cw_measure_read(c, bytes),
        .read_bytes = (double)bytes,
        .int8 = cw_measure_int8(c),
        .sgemm = info->float_file && info->blas ? cw_measure_sgemm(c) : 0,
    };
    bench_add(out, "read_gbs", m->read / 1e9);
    bench_add_whole(out, "read_bytes", m->read_bytes);
    if (own < beyond) {
        bench_add(out, "memory_gbs", cw_measure_read(c, beyond) / 1e9);
    } else {
        bench_add(out, "memory_gbs", m->read / 1e9);
    }
    bench_add_whole(out, "memory_bytes", (double)beyond);
    bench_add(out, "int8_gops", m->int8 / 1e9);
    if (m->sgemm > 0) {
        bench_add(out, "sgemm_gops", m->sgemm / 1e9);
    }
    enum cw_type type = main_type(b->e.model);
    const struct cw_type_info *t = cw_type_info(type);
    if (t && info->n_embd % t->block == 0 && info->n_ff > 0) {
        struct json_object *row = json_object_new_object();
        struct cw_product_speed many =
            cw_measure_product(c, type, info->n_ff, info->n_embd, MANY_TOKENS, false);
        struct cw_product_speed one =
            cw_measure_product(c, type, info->n_ff, info->n_embd, 1, false);
        json_object_object_add(row, "type", json_object_new_string(t->name));
        bench_add(row, "prefill_gops", many.macs / 1e9);
        bench_add(row, "decode_gbs", one.bytes / 1e9);
        json_object_object_add(out, "product", row);
    }
    cw_compute_destroy(c);
    return CW_OK;
}

/* ---- the part of its own -------------------------------------------------------------------- */

int bench_limits(struct bench *b, struct json_object *out, struct cw_err *err) {
    struct bench_machine machine;
    int rc = bench_open(b, 64, out, err);
    if (rc == CW_OK) {
        struct bench_cost cost = bench_cost(b->e.model);
        bench_add_whole(out, "weight_bytes_token", cost.weight_bytes);
        bench_add_whole(out, "macs_token", cost.macs);
        rc = bench_machine(b, &machine, out, err);
    }
    return rc;
}

void bench_limits_print(struct json_object *out) {
    struct json_object *v = NULL;
    char unit[64];
    snprintf(unit, sizeof unit, "GB/s, from %.0f MB", bench_number(out, "read_bytes") / 1e6);
    bench_put(out, "read_gbs", "reads, the model's size", unit, 1);
    snprintf(unit, sizeof unit, "GB/s, from %.0f MB", bench_number(out, "memory_bytes") / 1e6);
    bench_put(out, "memory_gbs", "reads, past the caches", unit, 1);
    bench_put(out, "int8_gops", "integer peak", "G multiply-adds/s", 0);
    bench_put(out, "sgemm_gops", "OpenBLAS sgemm peak", "G multiply-adds/s", 0);
    if (json_object_object_get_ex(out, "product", &v)) {
        bench_put(v, "prefill_gops", "product of a layer, 512", "G multiply-adds/s", 0);
        bench_put(v, "decode_gbs", "product of a layer, one", "GB/s of weights", 1);
    }
}
