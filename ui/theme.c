/* SPDX-License-Identifier: MIT
 *
 * Reading themes, through inih, and the looks they give at each depth of colour.
 *
 * A theme is loaded over the one it is based on, section by section: [roles] gives the look with
 * all colours and, by nearest colours, the one with 16; [16] and [mono] then correct.
 */
#include "ui/theme.h"

#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "chinwag/file.h"
#include "theme_builtin.h"

enum { N_BUILTIN = sizeof builtin_themes / sizeof builtin_themes[0], MAX_FILE = 256 * 1024 };

/* A colour as it is written: -1: default; 0 .. 255: of the palette; else RGB | 0xRRGGBB. */
enum { RGB = 1 << 24 };

struct look {
    int32_t fg, bg;
    uint8_t attrs;
};

struct theme {
    struct look mono[UI_N_ROLES], c16[UI_N_ROLES], full[UI_N_ROLES];
};

static const char *const names[UI_N_ROLES] = {
    [UI_TEXT] = "text",
    [UI_TITLE] = "title",
    [UI_RULE] = "rule",
    [UI_DIM] = "dim",
    [UI_YOU] = "you",
    [UI_REPLY] = "reply",
    [UI_YOUR_TEXT] = "your-text",
    [UI_THINKING] = "thinking",
    [UI_NOTICE] = "notice",
    [UI_ERROR] = "error",
    [UI_MARK] = "mark",
    [UI_CHANGE] = "change",
    [UI_PROMPT] = "prompt",
    [UI_STATUS] = "status",
    [UI_STATUS_STATE] = "status-state",
    [UI_METER] = "meter",
    [UI_METER_MID] = "meter-mid",
    [UI_METER_HIGH] = "meter-high",
    [UI_NEW_LINES] = "new-lines",
    [UI_HELP_KEY] = "help-key",
    [UI_SELECTED] = "selected",
    [UI_SCROLLBAR] = "scrollbar",
    [UI_PICKED] = "picked",
    [UI_HIT] = "hit",
    [UI_HIT_CURRENT] = "hit-current",
    [UI_PROB_0] = "prob-0",
    [UI_PROB_1] = "prob-1",
    [UI_PROB_2] = "prob-2",
    [UI_PROB_3] = "prob-3",
    [UI_PROB_4] = "prob-4",
    [UI_PROB_5] = "prob-5",
    [UI_PROB_NONE] = "prob-none",
    [UI_HEADING_1] = "heading-1",
    [UI_HEADING] = "heading",
    [UI_QUOTE] = "quote",
    [UI_RAW] = "raw",
    [UI_CODE_SPAN] = "code-span",
    [UI_LINK] = "link",
    [UI_URL] = "url",
    [UI_IMAGE] = "image",
    [UI_HTML] = "html",
    [UI_LIST_MARK] = "list-mark",
    [UI_TASK_OPEN] = "task-open",
    [UI_TASK_DONE] = "task-done",
    [UI_BORDER] = "border",
    [UI_TABLE_HEAD] = "table-head",
    [UI_CODE_LANG] = "code-lang",
    [UI_CODE] = "code",
    [UI_CODE_KEYWORD] = "code-keyword",
    [UI_CODE_TYPE] = "code-type",
    [UI_CODE_CONSTANT] = "code-constant",
    [UI_CODE_STRING] = "code-string",
    [UI_CODE_NUMBER] = "code-number",
    [UI_CODE_COMMENT] = "code-comment",
    [UI_CODE_FUNCTION] = "code-function",
    [UI_CODE_VARIABLE] = "code-variable",
    [UI_CODE_PREPROC] = "code-preproc",
    [UI_CODE_KEY] = "code-key",
    [UI_CODE_TAG] = "code-tag",
    [UI_DIFF_ADD] = "diff-add",
    [UI_DIFF_DEL] = "diff-del",
    [UI_DIFF_HUNK] = "diff-hunk",
};

static struct theme current;
static char *current_name; /* NULL: nothing was loaded yet */

const char *ui_theme_name(size_t i) {
    return i < N_BUILTIN ? builtin_themes[i].name : NULL;
}

const char *ui_role_name(enum ui_role role) {
    return names[role];
}

/* ---- colours -------------------------------------------------------------------------------- */

/* What xterm shows for the first sixteen, unless told otherwise. */
static const int32_t first_16[16] = {0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd,
                                     0x00cdcd, 0xe5e5e5, 0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00,
                                     0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff};

/* Colour 0 .. 255 of xterm's palette: sixteen, a cube of 6 x 6 x 6, 24 greys. */
static int32_t palette_rgb(int i) {
    static const int32_t steps[6] = {0, 95, 135, 175, 215, 255};
    if (i < 16) {
        return first_16[i];
    }
    if (i < 232) {
        i -= 16;
        return steps[i / 36] << 16 | steps[i / 6 % 6] << 8 | steps[i % 6];
    }
    return (8 + 10 * (i - 232)) * 0x010101;
}

static int32_t distance(int32_t a, int32_t b) {
    int32_t red = (a >> 16) - (b >> 16), green = (a >> 8 & 255) - (b >> 8 & 255),
            blue = (a & 255) - (b & 255);
    return 2 * red * red + 4 * green * green + 3 * blue * blue; /* as eyes weigh them, roughly */
}

/* The colour of [from, to) of the palette that comes nearest. */
static int32_t nearest(int32_t rgb, int from, int to) {
    int best = from;
    for (int i = from + 1; i < to; i++) {
        if (distance(rgb, palette_rgb(i)) < distance(rgb, palette_rgb(best))) {
            best = i;
        }
    }
    return best;
}

static int32_t colour_at(int32_t c, enum ui_depth depth) {
    if (c < 0 || depth == UI_MONO) {
        return -1;
    }
    int32_t rgb = c & RGB ? c & 0xffffff : palette_rgb((int)c);
    switch (depth) {
    case UI_COLORS_RGB: /* numbers below 16 are the palette's to such terminals too */
        return c < 16 ? c : rgb < 16 ? 16 : rgb;
    case UI_COLORS_256:
        return c & RGB ? nearest(rgb, 16, 256) : c;
    case UI_COLORS_16:
        return c < 16 ? c : nearest(rgb, 0, 16);
    case UI_MONO:
        break;
    }
    return -1;
}

static bool parse_colour(const char *word, int32_t *out) {
    static const char *const colours[8] = {"black", "red",     "green", "yellow",
                                           "blue",  "magenta", "cyan",  "white"};
    if (word[0] == '#') {
        if (strlen(word) != 7 || word[1 + strspn(word + 1, "0123456789abcdefABCDEF")] != '\0') {
            return false;
        }
        *out = RGB | (int32_t)strtol(word + 1, NULL, 16);
        return true;
    }
    if (word[0] >= '0' && word[0] <= '9') {
        char *end;
        long v = strtol(word, &end, 10);
        *out = (int32_t)v;
        return *end == '\0' && v <= 255;
    }
    if (strcmp(word, "default") == 0) {
        *out = -1;
        return true;
    }
    bool bright = strncmp(word, "bright-", 7) == 0;
    for (int32_t i = 0; i < 8; i++) {
        if (strcmp(word + (bright ? 7 : 0), colours[i]) == 0) {
            *out = i + (bright ? 8 : 0);
            return true;
        }
    }
    return false;
}

/* ---- files ---------------------------------------------------------------------------------- */

struct reader {
    struct theme *theme;
    const char *name; /* for messages */
    const char *at;   /* what is still to be read */
    int line;
    int depth; /* of themes based on each other */
    struct cw_err err;
};

static int load_text(struct theme *theme, const char *name, const char *text, int depth,
                     struct cw_err *err);

static int fail(struct reader *r, const char *what, const char *word) {
    if (r->err.code == CW_OK) {
        cw_fail(&r->err, CW_EFORMAT, "theme %s:%d: %s '%s'", r->name, r->line, what, word);
    }
    return 0;
}

static int parse_look(struct reader *r, const char *value, struct look *out) {
    static const struct {
        const char *name;
        uint8_t bit;
    } attributes[] = {{"bold", UI_BOLD},           {"faint", UI_FAINT},     {"italic", UI_ITALIC},
                      {"underline", UI_UNDERLINE}, {"reverse", UI_REVERSE}, {"strike", UI_STRIKE}};
    char words[256], *save = NULL;
    if (strlen(value) >= sizeof words) {
        return fail(r, "too long:", value);
    }
    strcpy(words, value);
    *out = (struct look){-1, -1, 0};
    bool ground = false;
    for (char *w = strtok_r(words, " \t", &save); w != NULL; w = strtok_r(NULL, " \t", &save)) {
        uint8_t bit = 0;
        for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
            bit = strcmp(w, attributes[i].name) == 0 ? attributes[i].bit : bit;
        }
        if (strcmp(w, "on") == 0 && !ground) {
            ground = true;
        } else if (bit != 0 && !ground) {
            out->attrs |= bit;
        } else if (!parse_colour(w, ground ? &out->bg : &out->fg)) {
            return fail(r, "neither a colour nor an attribute:", w);
        } else {
            ground = false;
        }
    }
    return ground ? fail(r, "no colour after", "on") : 1;
}

static int on_entry(void *arg, const char *section, const char *name, const char *value) {
    struct reader *r = arg;
    if (strcmp(section, "theme") == 0) {
        if (strcmp(name, "base") != 0) {
            return fail(r, "unknown key", name);
        }
        for (size_t i = 0; i < N_BUILTIN && r->depth < 4; i++) {
            if (strcmp(value, builtin_themes[i].name) == 0) {
                return load_text(r->theme, value, builtin_themes[i].text, r->depth + 1, &r->err) ==
                       CW_OK;
            }
        }
        return fail(r, "no built-in theme", value);
    }
    enum ui_role role = UI_TEXT;
    while (role < UI_N_ROLES && strcmp(name, names[role]) != 0) {
        role++;
    }
    struct look look;
    if (role == UI_N_ROLES) {
        return fail(r, "unknown role", name);
    }
    if (!parse_look(r, value, &look)) {
        return 0;
    }
    if (strcmp(section, "roles") == 0) {
        r->theme->full[role] = r->theme->c16[role] = look;
    } else if (strcmp(section, "16") == 0) {
        r->theme->c16[role] = look;
    } else if (strcmp(section, "mono") == 0) {
        r->theme->mono[role] = look;
        if (r->depth < 0) { /* the first one: what the themes give no colours has these too */
            r->theme->full[role] = r->theme->c16[role] = look;
        }
    } else {
        return fail(r, "unknown section", section);
    }
    return 1;
}

/* fgets for inih. A line that does not fit is an error, not two lines. */
static char *read_line(char *dst, int cap, void *arg) {
    struct reader *r = arg;
    if (*r->at == '\0') {
        return NULL;
    }
    r->line++;
    size_t n = strcspn(r->at, "\n");
    if (n >= (size_t)cap - 1) {
        fail(r, "the line is too long:", "");
        dst[0] = '\0';
    } else {
        memcpy(dst, r->at, n);
        dst[n] = '\0';
    }
    r->at += n + (r->at[n] == '\n');
    return dst;
}

static int load_text(struct theme *theme, const char *name, const char *text, int depth,
                     struct cw_err *err) {
    struct reader r = {.theme = theme, .name = name, .at = text, .depth = depth};
    int bad_line = ini_parse_stream(read_line, &r, on_entry, &r);
    if (bad_line > 0 && r.err.code == CW_OK) {
        r.line = bad_line;
        fail(&r, "not 'role = look' or a [section]", "");
    } else if (bad_line < 0) {
        cw_fail(&r.err, CW_ENOMEM, "theme %s: cannot be read", name);
    }
    if (r.err.code != CW_OK && err != NULL) {
        *err = r.err;
    }
    return r.err.code;
}

/* The theme that all begin as: none. */
static void init(struct theme *theme) {
    for (int i = 0; i < UI_N_ROLES; i++) {
        theme->mono[i] = theme->c16[i] = theme->full[i] = (struct look){-1, -1, 0};
    }
    for (size_t i = 0; i < N_BUILTIN; i++) {
        if (strcmp(builtin_themes[i].name, "none") == 0) {
            load_text(theme, "none", builtin_themes[i].text, -1, NULL);
        }
    }
}

static int read_file(const char *path, struct cw_buf *out, struct cw_err *err) {
    struct cw_err why;
    int code = cw_file_read(path, MAX_FILE, out, &why);
    if (code != CW_OK) {
        return cw_fail(err, code, "theme %s", why.text);
    }
    if (out->len > 0 && memchr(out->data, '\0', out->len) != NULL) {
        return cw_fail(err, CW_EFORMAT, "theme %s: not a theme file", path);
    }
    cw_buf_puts(out, "");
    return CW_OK;
}

/* On terminals that tell, the ground: "15;0" is white on black. */
static const char *by_ground(void) {
    const char *ground = getenv("COLORFGBG");
    ground = ground != NULL ? strrchr(ground, ';') : NULL;
    bool light = ground != NULL && (strcmp(ground, ";7") == 0 || strcmp(ground, ";15") == 0);
    return light ? "light" : "dark";
}

static int load(const char *name, struct theme *theme, struct cw_err *err) {
    name = strcmp(name, "auto") == 0 ? by_ground() : name;
    for (size_t i = 0; i < N_BUILTIN; i++) {
        if (strcmp(name, builtin_themes[i].name) == 0) {
            return load_text(theme, name, builtin_themes[i].text, 0, err);
        }
    }
    size_t n = strlen(name);
    if (strchr(name, '/') == NULL && (n < 4 || strcmp(name + n - 4, ".ini") != 0)) {
        return cw_fail(err, CW_ENOENT,
                       "theme %s: there are auto, dark, light, high-contrast and none, or a file",
                       name);
    }
    struct cw_buf text = {0};
    int code = read_file(name, &text, err);
    if (code == CW_OK) {
        code = load_text(theme, name, text.data, 0, err);
    }
    cw_buf_free(&text);
    return code;
}

int ui_theme_load(const char *name, struct cw_err *err) {
    struct theme theme;
    init(&theme);
    int code = load(name, &theme, err);
    if (code == CW_OK) {
        char *copy = cw_strdup(name); /* it may be the current name itself */
        free(current_name);
        current_name = copy;
        current = theme;
    }
    return code;
}

const char *ui_theme_current(void) {
    return current_name != NULL ? current_name : "auto";
}

/* ---- looks ---------------------------------------------------------------------------------- */

struct ui_style ui_theme_style(enum ui_role role, enum ui_depth depth) {
    if (current_name == NULL) {
        ui_theme_load("auto", NULL);
    }
    const struct look *look = depth == UI_MONO        ? &current.mono[role]
                              : depth == UI_COLORS_16 ? &current.c16[role]
                                                      : &current.full[role];
    return (struct ui_style){colour_at(look->fg, depth), colour_at(look->bg, depth), look->attrs};
}

enum ui_role ui_theme_prob(double p) {
    static const double from[] = {0.9, 0.6, 0.3, 0.1, 0.02, 0};
    if (!(p >= 0)) {
        return UI_PROB_NONE;
    }
    int i = 0;
    while (i < 5 && p < from[i]) {
        i++;
    }
    return (enum ui_role)(UI_PROB_0 + i);
}
