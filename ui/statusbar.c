/* SPDX-License-Identifier: MIT
 *
 * The bottom line as a list of parts. Each has a rank; parts of the lowest rank go first when the
 * line is too long.
 */
#include "ui/statusbar.h"

#include <stdio.h>
#include <string.h>

enum { MAX_PARTS = 16, PART_BYTES = 160, METER_CELLS = 8 };

struct part {
    char text[PART_BYTES];
    enum ui_role role;
    int rank;       /* the higher the longer it stays */
    bool new_group; /* a bar in front */
    int width;
    bool shown;
};

struct line {
    struct part parts[MAX_PARTS];
    int n;
    bool bars; /* between groups; a narrow line has no columns for them */
};

static struct part *add(struct line *l, int rank, enum ui_role role, bool new_group) {
    struct part *p = &l->parts[l->n++];
    *p = (struct part){.role = role, .rank = rank, .new_group = new_group, .shown = true};
    return p;
}

static void state_text(const struct ui_status *st, char *out, size_t cap) {
    static const char *const words[] = {
        [UI_STATE_LOADING] = "loading",     [UI_STATE_READING] = "reading",
        [UI_STATE_ANSWERING] = "answering", [UI_STATE_STOPPING] = "stopping",
        [UI_STATE_IDLE] = "idle",           [UI_STATE_FAILED] = "no model",
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

static void build(struct line *l, const struct ui_status *st) {
    struct part *p = add(l, 100, UI_STATUS_STATE, false);
    state_text(st, p->text, sizeof p->text);
    if (st->state == UI_STATE_READING && st->left_s >= 0) {
        p = add(l, 85, UI_STATUS, false);
        left_text(st->left_s, p->text, sizeof p->text);
    }
    if (st->state == UI_STATE_ANSWERING && st->spark[UI_SPARK - 1] > 0) {
        p = add(l, 10, UI_METER, false);
        spark_text(st->spark, p->text, sizeof p->text);
    }
    if (st->tps > 0) {
        p = add(l, 80, UI_STATUS, false);
        tps_text(st->tps, p->text, sizeof p->text);
    }
    if (st->ttft_s > 0) {
        p = add(l, 40, UI_STATUS, false);
        ttft_text(st->ttft_s, p->text, sizeof p->text);
    }
    p = add(l, 70, st->temp_changed ? UI_CHANGE : UI_STATUS, true);
    snprintf(p->text, sizeof p->text, "T %.2f%s", st->temp, st->temp_changed ? "*" : "");
    p = add(l, 60, st->top_p_changed ? UI_CHANGE : UI_STATUS, false);
    snprintf(p->text, sizeof p->text, "top-p %.2f%s", st->top_p, st->top_p_changed ? "*" : "");
    if (st->n_ctx > 0) {
        bool high = (double)st->ctx_used > 0.85 * (double)st->n_ctx;
        p = add(l, 30, high ? UI_METER_HIGH : UI_METER, true);
        meter_text(st, p->text, sizeof p->text);
        p = add(l, 90, high ? UI_METER_HIGH : UI_STATUS, false);
        snprintf(p->text, sizeof p->text, "%zu/%zu", st->ctx_used, st->n_ctx);
    }
    if (st->n_reused + st->n_evaluated > 0) {
        p = add(l, 20, UI_STATUS, true);
        snprintf(p->text, sizeof p->text, "%zu reused +%zu", st->n_reused, st->n_evaluated);
    }
    if (st->anew_from > 0) {
        p = add(l, 25, UI_CHANGE, false);
        snprintf(p->text, sizeof p->text, "anew from %zu", st->anew_from);
    }
    if (st->model != NULL && st->model[0] != '\0') {
        p = add(l, 15, UI_STATUS, true);
        snprintf(p->text, sizeof p->text, "%s", st->model);
    }
    for (int i = 0; i < l->n; i++) {
        l->parts[i].width = ui_text_width(l->parts[i].text, strlen(l->parts[i].text), 10000);
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
            return *bar ? 3 : 2;
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
    int n_shown = l.n;
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
