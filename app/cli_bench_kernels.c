/* SPDX-License-Identifier: MIT
 *
 * Every kernel of every instruction set that this CPU has, through the functions that the forward
 * pass calls: products of each type with 1, 2, 4, 8 and 512 tokens, as the file has the weights and
 * in the packed copy, attention over both types of cache, and the rest of a layer.
 */
#include "app/cli_bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chinwag/clock.h"
#include "core/compute/measure.h"

enum {
    ROWS = 1024, /* of the matrices: in the cache, with work for several threads */
    COLS = 2048,
    WIDTH = 2048, /* of vectors */
    TOKENS = 64,
    HEADS = 8, /* heads of queries */
    KV_HEADS = 2,
    HEAD = 128,
    CELLS = 2048,
    PROMPT = 256,
    N_ANGLES = TOKENS * HEAD / 2,
};
static const double LONG_ENOUGH_S = 0.03;

static const enum cw_type types[] = {CW_F32,  CW_F16,   CW_BF16,   CW_Q4_0,  CW_Q4_1, CW_Q5_0,
                                     CW_Q5_1, CW_Q8_0,  CW_Q2_K,   CW_Q3_K,  CW_Q4_K, CW_Q5_K,
                                     CW_Q6_K, CW_MXFP4, CW_IQ4_NL, CW_IQ4_XS};
static const int columns[] = {1, 2, 4, 8, 512};
enum { N_COLUMNS = sizeof columns / sizeof *columns };

/* ---- products ------------------------------------------------------------------------------- */

/* One type: "gemv_1" .. "gemv_8" and "gemm_512" in multiply-adds, "read_gbs" of the first. NULL
 * where the type has no packed copy. */
static struct json_object *time_type(const struct cw_compute_options *opt, enum cw_type type,
                                     bool packed, struct cw_err *err) {
    struct json_object *row = json_object_new_object();
    json_object_object_add(row, "type", json_object_new_string(cw_type_info(type)->name));
    json_object_object_add(row, "packed", json_object_new_boolean(packed));
    for (size_t i = 0; i < N_COLUMNS; i++) {
        char key[24];
        struct cw_compute *c; /* packs one weight in its life */
        if (cw_compute_create(&c, opt, err) != CW_OK) {
            break;
        }
        struct cw_product_speed s = cw_measure_product(c, type, ROWS, COLS, columns[i], packed);
        cw_compute_destroy(c);
        if (s.macs <= 0) {
            break;
        }
        snprintf(key, sizeof key, "%s_%d", columns[i] > 8 ? "gemm" : "gemv", columns[i]);
        bench_add(row, key, s.macs / 1e9);
        if (columns[i] == 1) {
            bench_add(row, "read_gbs", s.bytes / 1e9);
        }
    }
    if (!json_object_object_get_ex(row, "gemv_1", NULL)) {
        json_object_put(row);
        return NULL;
    }
    return row;
}

/* ---- the rest of a layer -------------------------------------------------------------------- */

/* What the timed calls work on. */
struct stage {
    struct cw_compute *c;
    struct cw_act act;
    float *x, *y, *w; /* [TOKENS, WIDTH], [TOKENS, WIDTH], [WIDTH] */
    float *q, *o;     /* [PROMPT, HEADS * HEAD] */
    float *k;         /* [CELLS, KV_HEADS * HEAD], also as values */
    float *angles;    /* cosines and sines, [N_ANGLES] each: lengths must not shrink to denormals */
    struct cw_kv_layer kv;
    uint32_t pages[CELLS / CW_PAGE_CELLS];
    struct cw_place at[CELLS]; /* one timeline */
    int n;                     /* queries, the last of them */
};

static void do_norm_rms(struct stage *s) {
    cw_norm_rows(s->c, CW_NORM_RMS, s->x, s->w, NULL, 1e-5f, TOKENS, WIDTH, s->y);
}
static void do_norm_layer(struct stage *s) {
    cw_norm_rows(s->c, CW_NORM_LAYER, s->x, s->w, s->w, 1e-5f, TOKENS, WIDTH, s->y);
}
static void do_glu(struct stage *s, enum cw_glu kind) {
    cw_glu_act(s->c, kind, s->x, WIDTH, s->y, WIDTH, TOKENS, WIDTH, 0, &s->act);
}
static void do_silu(struct stage *s) {
    do_glu(s, CW_GLU_SILU);
}
static void do_gelu_glu(struct stage *s) {
    do_glu(s, CW_GLU_GELU);
}
static void do_oai(struct stage *s) {
    do_glu(s, CW_GLU_OAI);
}
static void do_gelu(struct stage *s) {
    cw_gelu_act(s->c, s->x, TOKENS, WIDTH, 0, &s->act);
}
static void do_add(struct stage *s) {
    cw_add_scaled(s->c, s->y, s->x, 1e-6f, (size_t)TOKENS * WIDTH);
}
static void do_scale(struct stage *s) {
    cw_scale(s->c, s->y, 1.0f, (size_t)TOKENS * WIDTH);
}
static void do_softcap(struct stage *s) {
    cw_softcap(s->c, s->y, 30.0f, (size_t)TOKENS * WIDTH);
}
static void do_rope(struct stage *s) {
    cw_rope(s->c, s->q, (size_t)HEADS * HEAD, TOKENS, HEADS, HEAD, HEAD, true, s->angles,
            s->angles + N_ANGLES);
}
static void do_quantise(struct stage *s, enum cw_act_kind kind) {
    s->act.have = 1U << CW_ACT_F32;
    cw_act_quantise(s->c, &s->act, 1U << kind);
}
static void do_quantise_32(struct stage *s) {
    do_quantise(s, CW_ACT_Q32);
}
static void do_quantise_256(struct stage *s) {
    do_quantise(s, CW_ACT_Q256);
}
static void do_store(struct stage *s) {
    size_t ld = (size_t)KV_HEADS * HEAD;
    cw_kv_store(s->c, &s->kv, s->at, PROMPT, s->k, ld, s->k, ld);
}
static void do_attend(struct stage *s) {
    const struct cw_attention a = {
        .kv = &s->kv,
        .q = s->q,
        .ldq = (size_t)HEADS * HEAD,
        .y = s->o,
        .ldy = (size_t)HEADS * HEAD,
        .at = s->at + CELLS - s->n,
        .n = s->n,
        .n_heads = HEADS,
        .scale = 0.088f,
    };
    cw_attend(s->c, &a);
}

/* Seconds of one call. */
static double time_call(struct stage *s, void (*call)(struct stage *s)) {
    double best = HUGE_VAL;
    call(s);
    double begin = cw_now();
    do {
        double start = cw_now();
        call(s);
        double t = cw_now() - start;
        best = t < best ? t : best;
    } while (cw_now() - begin < LONG_ENOUGH_S);
    return best;
}

static void add_call(struct json_object *list, const char *name, const char *unit, double value) {
    struct json_object *row = json_object_new_object();
    json_object_object_add(row, "kernel", json_object_new_string(name));
    json_object_object_add(row, "unit", json_object_new_string(unit));
    bench_add(row, "value", value / 1e9);
    json_object_array_add(list, row);
}

static void time_vectors(struct stage *s, struct json_object *list) {
    static const struct {
        const char *name;
        double arrays; /* read or written once */
        void (*call)(struct stage *s);
    } calls[] = {
        {"norm_rms", 2, do_norm_rms},
        {"norm_layer", 2, do_norm_layer},
        {"glu_silu", 3, do_silu},
        {"glu_gelu", 3, do_gelu_glu},
        {"glu_oai", 3, do_oai},
        {"gelu", 2, do_gelu},
        {"add_scaled", 3, do_add},
        {"scale", 2, do_scale},
        {"softcap", 2, do_softcap},
        {"rope", 2.0 * HEADS * HEAD / WIDTH, do_rope},
        {"quantise_32", 1.25, do_quantise_32},
        {"quantise_256", 1.25, do_quantise_256},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        double bytes = calls[i].arrays * TOKENS * WIDTH * sizeof(float);
        add_call(list, calls[i].name, "GB/s", bytes / time_call(s, calls[i].call));
    }
}

/* One type of cache: storing, a prompt's attention, and a token's. */
static void time_cache(struct stage *s, enum cw_kv_type kind, struct json_object *list) {
    const char *suffix = kind == CW_KV_F16 ? "f16" : "q8_0";
    char name[32];
    uint64_t bytes = cw_kv_layer_bytes(CELLS, KV_HEADS, HEAD, HEAD, (int)kind);
    s->kv = (struct cw_kv_layer){
        .base = cw_large_alloc(bytes),
        .page_bytes = (size_t)bytes / (CELLS / CW_PAGE_CELLS),
        .n_kv_heads = KV_HEADS,
        .head_k = HEAD,
        .head_v = HEAD,
        .kind = (int)kind,
    };
    if (!s->kv.base) {
        return;
    }
    size_t ld = (size_t)KV_HEADS * HEAD;
    cw_kv_store(s->c, &s->kv, s->at, CELLS, s->k, ld, s->k, ld);
    snprintf(name, sizeof name, "store_%s", suffix);
    add_call(list, name, "GB/s",
             2.0 * PROMPT * KV_HEADS * HEAD * sizeof(float) / time_call(s, do_store));
    s->n = 1;
    snprintf(name, sizeof name, "attend_%s_1", suffix);
    add_call(list, name, "GB/s", (double)bytes / time_call(s, do_attend));
    s->n = PROMPT;
    snprintf(name, sizeof name, "attend_%s_%d", suffix, PROMPT);
    double macs = 2.0 * HEADS * HEAD * PROMPT * (CELLS - PROMPT / 2.0);
    add_call(list, name, "GMAC/s", macs / time_call(s, do_attend));
    cw_large_free(s->kv.base, bytes);
}

static int time_layer(const struct cw_compute_options *opt, struct json_object *list,
                      struct cw_err *err) {
    struct stage s = {0};
    size_t n_x = (size_t)TOKENS * WIDTH, n_q = (size_t)PROMPT * HEADS * HEAD;
    size_t n_k = (size_t)CELLS * KV_HEADS * HEAD;
    size_t total = 2 * n_x + WIDTH + 2 * n_q + n_k + 2 * N_ANGLES;
    float *all = cw_large_alloc(total * sizeof *all);
    int rc = all ? cw_compute_create(&s.c, opt, err) : cw_fail(err, CW_ENOMEM, "no memory");
    if (rc == CW_OK) {
        rc = cw_act_create(&s.act, TOKENS, WIDTH, err);
    }
    if (rc == CW_OK) {
        for (size_t i = 0; i < total; i++) {
            all[i] = (float)(i % 127) * 0.01f - 0.6f;
        }
        s.x = all;
        s.y = s.x + n_x;
        s.w = s.y + n_x;
        s.q = s.w + WIDTH;
        s.o = s.q + n_q;
        s.k = s.o + n_q;
        s.angles = s.k + n_k;
        for (size_t i = 0; i < N_ANGLES; i++) {
            s.angles[i] = 0.8f;
            s.angles[i + N_ANGLES] = 0.6f;
        }
        for (uint32_t i = 0; i < CELLS; i++) {
            s.pages[i / CW_PAGE_CELLS] = i / CW_PAGE_CELLS;
            s.at[i] = (struct cw_place){s.pages, i};
        }
        s.act.n = TOKENS;
        s.act.width = WIDTH;
        memcpy(s.act.x, s.x, n_x * sizeof *s.x);
        time_vectors(&s, list);
        time_cache(&s, CW_KV_F16, list);
        time_cache(&s, CW_KV_Q8_0, list);
        cw_act_free(&s.act);
    }
    cw_compute_destroy(s.c);
    if (all) {
        cw_large_free(all, total * sizeof *all);
    }
    return rc;
}

/* ---- the part ------------------------------------------------------------------------------- */

int bench_kernels(struct bench *b, struct json_object *out, struct cw_err *err) {
    const struct app_settings *s = &b->cli->settings;
    struct json_object *sets = json_object_new_array();
    int rc = CW_OK;
    json_object_object_add(out, "isas", sets);
    for (int isa = CW_ISA_SCALAR; isa < CW_N_ISAS && rc == CW_OK; isa++) {
        if (!cw_isa_available((enum cw_isa)isa) || (s->isa != CW_ISA_AUTO && s->isa != isa)) {
            continue;
        }
        const struct cw_compute_options opt = {.n_threads = s->n_threads, .isa = (enum cw_isa)isa};
        struct json_object *set = json_object_new_object();
        struct json_object *products = json_object_new_array();
        struct json_object *layer = json_object_new_array();
        json_object_array_add(sets, set);
        json_object_object_add(set, "isa", json_object_new_string(cw_isa_name((enum cw_isa)isa)));
        json_object_object_add(set, "products", products);
        json_object_object_add(set, "layer", layer);
        struct cw_compute *c;
        rc = cw_compute_create(&c, &opt, err);
        if (rc == CW_OK) {
            json_object_object_add(set, "threads", json_object_new_int(cw_compute_n_threads(c)));
            bench_add(set, "int8_gops", cw_measure_int8(c) / 1e9);
            cw_compute_destroy(c);
            rc = time_layer(&opt, layer, err);
        }
        for (size_t i = 0; i < sizeof types / sizeof *types && rc == CW_OK; i++) {
            for (int packed = 0; packed < 2; packed++) {
                struct json_object *row = time_type(&opt, types[i], packed, err);
                if (row) {
                    json_object_array_add(products, row);
                }
            }
        }
    }
    if (rc == CW_OK && json_object_array_length(sets) == 0) {
        rc = cw_fail(err, CW_EUNSUP, "this CPU has no %s", cw_isa_name((enum cw_isa)s->isa));
    }
    return rc;
}

void bench_kernels_print(struct json_object *out) {
    struct cw_buf *to = cli_out();
    struct json_object *sets = json_object_object_get(out, "isas");
    for (size_t i = 0; i < json_object_array_length(sets); i++) {
        struct json_object *set = json_object_array_get_idx(sets, i);
        struct json_object *rows = json_object_object_get(set, "products");
        cw_buf_printf(to, "%s%s, %.0f threads: %.0f G multiply-adds/s in registers\n\n",
                      i ? "\n" : "", bench_text(set, "isa"), bench_number(set, "threads"),
                      bench_number(set, "int8_gops"));
        cw_buf_printf(to, "%-8s %8s %8s %8s %8s %8s %9s   GMAC/s, tokens\n", "type", "GB/s, 1", "1",
                      "2", "4", "8", "512");
        for (size_t k = 0; k < json_object_array_length(rows); k++) {
            struct json_object *row = json_object_array_get_idx(rows, k);
            bool packed = json_object_get_boolean(json_object_object_get(row, "packed"));
            cw_buf_printf(to, "%-8s %8.1f %8.1f %8.1f %8.1f %8.1f %9.1f%s\n",
                          bench_text(row, "type"), bench_number(row, "read_gbs"),
                          bench_number(row, "gemv_1"), bench_number(row, "gemv_2"),
                          bench_number(row, "gemv_4"), bench_number(row, "gemv_8"),
                          bench_number(row, "gemm_512"), packed ? "   packed" : "");
        }
        cw_buf_putc(to, '\n');
        rows = json_object_object_get(set, "layer");
        for (size_t k = 0; k < json_object_array_length(rows); k++) {
            struct json_object *row = json_object_array_get_idx(rows, k);
            cw_buf_printf(to, "%-16s %8.1f %s\n", bench_text(row, "kernel"),
                          bench_number(row, "value"), bench_text(row, "unit"));
        }
    }
}
