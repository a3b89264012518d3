/* SPDX-License-Identifier: MIT
 *
 * The bottom line as a list of parts. Each has a rank; parts of the lowest rank go first when the
 * line is too long.
 */
#include "ui/statusbar.h"

#include <stdio.h>
#include <string.h>

enum { PART_BYTES = 160, METER_CELLS = 8, MAX_PARTS = 24 };

struct part {
    char text[PART_BYTES]; /* "": it has nothing to tell now */
    enum ui_role role;
    int rank;       /* the higher the longer it stays */
    bool new_group; /* a bar in front */
    bool close;     /* only one blank in front: it belongs to the part before */
    int width;
    bool shown;
};

struct line {
    struct part parts[MAX_PARTS];
    int n;
    bool bars; /* between groups; a narrow line has no columns for them */
};

static void state_text(const struct ui_status *st, char *out, size_t cap) {
    static const char *const words[] = {
        [UI_STATE_LOADING] = "loading",     [UI_STATE_READING] = "reading",
        [UI_STATE_ANSWERING] = "answering", [UI_STATE_PAUSED] = "paused",
        [UI_STATE_STOPPING] = "stopping",   [UI_STATE_IDLE] = "idle",
        [UI_STATE_FAILED] = "no model",     [UI_STATE_THINKING] = "thinking",
    };
    int n = snprintf(out, cap, "%s", words[st->state]);
    if ((st->state == UI_STATE_LOADING || st->state == UI_STATE_READING) && st->fraction >= 0) {
        snprintf(out + n, cap - (size_t)n, " %d%%", (int)(st->fraction * 100));
    }
}

static void left_text(double s, char *out, size_t cap) {
    if (s < 60) {
        snprintf(out, cap, "%.0f s left", s < 1 ? 1 : s);
    } else {
        snprintf(out, cap, "%.0f min left", s / 60);
    }
}

static void spark_text(const double *values, char *out, size_t cap) {
    static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double max = 0;
    for (int i = 0; i < UI_SPARK; i++) {
        max = values[i] > max ? values[i] : max;
    }
    size_t n = 0;
    out[0] = '\0';
    for (int i = 0; i < UI_SPARK && max > 0; i++) {
        int level = (int)(values[i] / max * 7.0 + 0.5);
        n += (size_t)snprintf(out + n, cap - n, "%s", values[i] > 0 ? bars[level] : " ");
    }
}

static void meter_text(const struct ui_status *st, char *out, size_t cap) {
    double used = (double)st->ctx_used / (double)st->n_ctx;
    int full = (int)(used * METER_CELLS + 0.5);
    size_t n = 0;
    for (int i = 0; i < METER_CELLS; i++) {
        n += (size_t)snprintf(out + n, cap - n, "%s", i < full ? "▓" : "░");
    }
}

static void tps_text(double tps, char *out, size_t cap) {
    snprintf(out, cap, tps < 100 ? "%.1f tok/s" : "%.0f tok/s", tps);
}

static void ttft_text(double s, char *out, size_t cap) {
    if (s < 1) {
        snprintf(out, cap, "TTFT %.0f ms", s * 1000);
    } else {
        snprintf(out, cap, "TTFT %.1f s", s);
    }
}

/* ---- the parts: each writes its text, or none ------------------------------------------------ */

static enum ui_role state_part(const struct ui_status *st, char *out, size_t cap) {
    state_text(st, out, cap);
    return UI_STATUS_STATE;
}

static enum ui_role left_part(const struct ui_status *st, char *out, size_t cap) {
    if (st->state == UI_STATE_READING && st->left_s >= 0) {
        left_text(st->left_s, out, cap);
    }
    return UI_STATUS;
}

static enum ui_role spark_part(const struct ui_status *st, char *out, size_t cap) {
    bool writes = st->state == UI_STATE_THINKING || st->state == UI_STATE_ANSWERING ||
                  st->state == UI_STATE_PAUSED;
    if (writes && st->spark[UI_SPARK - 1] > 0) {
        spark_text(st->spark, out, cap);
    }
    return UI_METER;
}

static enum ui_role tps_part(const struct ui_status *st, char *out, size_t cap) {
    if (st->tps > 0) {
        tps_text(st->tps, out, cap);
    }
    return UI_STATUS;
}

static enum ui_role ttft_part(const struct ui_status *st, char *out, size_t cap) {
    if (st->ttft_s > 0) {
        ttft_text(st->ttft_s, out, cap);
    }
    return UI_STATUS;
}

static enum ui_role temp_part(const struct ui_status *st, char *out, size_t cap) {
    snprintf(out, cap, "T %.2f%s", st->temp, st->temp_changed ? "*" : "");
    return st->temp_changed ? UI_CHANGE : UI_STATUS;
}

static enum ui_role temp_origin_part(const struct ui_status *st, char *out, size_t cap) {
    snprintf(out, cap, "%s", st->temp_origin ? st->temp_origin : "");
    return UI_DIM;
}

static enum ui_role top_p_part(const struct ui_status *st, char *out, size_t cap) {
    snprintf(out, cap, "top-p %.2f%s", st->top_p, st->top_p_changed ? "*" : "");
    return st->top_p_changed ? UI_CHANGE : UI_STATUS;
}

static enum ui_role top_p_origin_part(const struct ui_status *st, char *out, size_t cap) {
    snprintf(out, cap, "%s", st->top_p_origin ? st->top_p_origin : "");
    return UI_DIM;
}

static enum ui_role seed_part(const struct ui_status *st, char *out, size_t cap) {
    if (st->seed_known) {
        snprintf(out, cap, "seed %u", st->seed);
    }
    return UI_STATUS;
}

/* The colour changes where a person should begin to think of it, and where it gets urgent. */
static enum ui_role fill_role(const struct ui_status *st, enum ui_role calm) {
    double used = (double)st->ctx_used / (double)st->n_ctx;
    return used > 0.85 ? UI_METER_HIGH : used > 0.6 ? UI_METER_MID : calm;
}

static enum ui_role meter_part(const struct ui_status *st, char *out, size_t cap) {
    if (st->n_ctx == 0) {
        return UI_METER;
    }
    meter_text(st, out, cap);
    return fill_role(st, UI_METER);
}

static enum ui_role used_part(const struct ui_status *st, char *out, size_t cap) {
    if (st->n_ctx == 0) {
        return UI_STATUS;
    }
    snprintf(out, cap, "%zu/%zu", st->ctx_used, st->n_ctx);
    return fill_role(st, UI_STATUS);
}

static enum ui_role reused_part(const struct ui_status *st, char *out, size_t cap) {
    if (st->n_reused + st->n_evaluated > 0) {
        snprintf(out, cap, "%zu reused +%zu", st->n_reused, st->n_evaluated);
    }
    return UI_STATUS;
}

static enum ui_role anew_part(const struct ui_status *st, char *out, size_t cap) {
    if (st->not_restored) {
        snprintf(out, cap, "snapshot not usable");
    } else if (st->anew_from > 0) {
        snprintf(out, cap, "anew from %zu", st->anew_from);
    }
    return UI_CHANGE;
}

static enum ui_role memory_part(const struct ui_status *st, char *out, size_t cap) {
    double mb = (double)st->memory_bytes / 1e6;
    if (st->memory_bytes > 0) {
        snprintf(out, cap, mb < 9999.5 ? "%.0f MB" : "%.1f GB", mb < 9999.5 ? mb : mb / 1e3);
    }
    return UI_STATUS;
}

static enum ui_role mode_part(const struct ui_status *st, char *out, size_t cap) {
    if (st->mode != NULL && st->mode[0] != '\0') {
        snprintf(out, cap, "vi %s", st->mode);
    }
    return UI_STATUS;
}

static enum ui_role branch_part(const struct ui_status *st, char *out, size_t cap) {
    if (st->n_branches > 1) {
        snprintf(out, cap, "branch %zu/%zu", st->branch, st->n_branches);
    }
    return UI_STATUS;
}

static enum ui_role private_part(const struct ui_status *st, char *out, size_t cap) {
    snprintf(out, cap, "%s", st->is_private ? "private" : "");
    return UI_CHANGE;
}

static enum ui_role model_part(const struct ui_status *st, char *out, size_t cap) {
    snprintf(out, cap, "%s", st->model ? st->model : "");
    return UI_STATUS;
}

/* In the order of the line. The rank says what stays when columns get few: first what is going on
 * and how full the context is, then what a person waits for or has just changed, last what can be
 * looked up elsewhere (/stats, /show). */
static const struct {
    enum ui_role (*write)(const struct ui_status *st, char *out, size_t cap);
    int rank;
    bool new_group, close;
} rows[] = {
    {state_part, 100, false, false},      {left_part, 85, false, false},
    {spark_part, 10, false, false},       {tps_part, 80, false, false},
    {ttft_part, 40, false, false},        {temp_part, 70, true, false},
    {temp_origin_part, 12, false, true},  {top_p_part, 60, false, false},
    {top_p_origin_part, 11, false, true}, {seed_part, 14, false, false},
    {meter_part, 30, true, false},        {used_part, 90, false, false},
    {reused_part, 20, true, false},       {anew_part, 25, false, false},
    {memory_part, 13, true, false},       {branch_part, 45, true, false},
    {private_part, 65, false, false},     {mode_part, 55, false, false},
    {model_part, 15, true, false},
};
_Static_assert(sizeof rows / sizeof rows[0] <= MAX_PARTS, "each needs a part");

static void build(struct line *l, const struct ui_status *st) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct part *p = &l->parts[l->n++];
        *p = (struct part){
            .rank = rows[i].rank, .new_group = rows[i].new_group, .close = rows[i].close};
        p->role = rows[i].write(st, p->text, sizeof p->text);
        p->width = ui_text_width(p->text, strlen(p->text), 10000);
        p->shown = p->width > 0;
    }
}

/* Columns between a part and the shown one before it. A bar stands where the group changes, also
 * when the part that began the group is left out. */
static int gap(const struct line *l, int i, bool *bar) {
    *bar = false;
    for (int k = i; k > 0; k--) {
        *bar = *bar || l->parts[k].new_group;
        if (l->parts[k - 1].shown) {
            *bar = *bar && l->bars;
            return *bar ? 3 : l->parts[i].close && k == i ? 1 : 2;
        }
    }
    *bar = false;
    return 1; /* the first one: a margin */
}

static int total_width(const struct line *l) {
    int width = 0;
    bool bar;
    for (int i = 0; i < l->n; i++) {
        width += l->parts[i].shown ? gap(l, i, &bar) + l->parts[i].width : 0;
    }
    return width;
}

void ui_statusbar_draw(struct ui_screen *s, int row, const struct ui_status *st) {
    struct line l = {.bars = s->cols >= 40};
    build(&l, st);
    int n_shown = 0;
    for (int i = 0; i < l.n; i++) {
        n_shown += l.parts[i].shown;
    }
    while (n_shown > 1 && total_width(&l) > s->cols) {
        int least = -1;
        for (int i = 0; i < l.n; i++) {
            if (l.parts[i].shown && (least < 0 || l.parts[i].rank < l.parts[least].rank)) {
                least = i;
            }
        }
        l.parts[least].shown = false;
        n_shown--;
    }
    int col = total_width(&l) > s->cols ? -1 : 0; /* no room even for the margin */
    for (int i = 0; i < l.n; i++) {
        if (!l.parts[i].shown) {
            continue;
        }
        bool bar;
        int space = gap(&l, i, &bar);
        if (bar) {
            ui_screen_puts(s, row, col + 1, s->cols, "│", UI_RULE);
        }
        col = ui_screen_puts(s, row, col + space, s->cols, l.parts[i].text, l.parts[i].role);
    }
}
