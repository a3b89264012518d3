/* SPDX-License-Identifier: MIT
 *
 * Every key of the table does what its row says, in the real program on a terminal: a row of
 * ui/keymap.c without a row here fails the suite. Also the keys that act in the middle of a reply,
 * other keys from config.ini, and the mouse.
 */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/ui/tui.h"
#include "ui/keymap.h"

#define ESC "\033"

static struct tui t;

static void setup(void) {
    tui_init(&t);
}

/* ---- what a terminal sends ------------------------------------------------------------------ */

/* As xterm does. */
static void bytes_of(const struct ui_binding *b, char *out, size_t cap) {
    static const struct {
        uint32_t code;
        char letter; /* CSI 1 ; mods LETTER */
        int number;  /* CSI NUMBER ; mods ~ */
    } keys[] = {
        {UI_KEY_UP, 'A', 0},     {UI_KEY_DOWN, 'B', 0},   {UI_KEY_RIGHT, 'C', 0},
        {UI_KEY_LEFT, 'D', 0},   {UI_KEY_HOME, 'H', 0},   {UI_KEY_END, 'F', 0},
        {UI_KEY_INSERT, 0, 2},   {UI_KEY_DELETE, 0, 3},   {UI_KEY_PGUP, 0, 5},
        {UI_KEY_PGDN, 0, 6},     {UI_KEY_F1, 'P', 0},     {UI_KEY_F1 + 1, 'Q', 0},
        {UI_KEY_F1 + 2, 'R', 0}, {UI_KEY_F1 + 3, 'S', 0}, {UI_KEY_F1 + 4, 0, 15},
        {UI_KEY_F1 + 5, 0, 17},  {UI_KEY_F1 + 6, 0, 18},  {UI_KEY_F1 + 7, 0, 19},
        {UI_KEY_F1 + 8, 0, 20},  {UI_KEY_F1 + 9, 0, 21},  {UI_KEY_F1 + 10, 0, 23},
        {UI_KEY_F1 + 11, 0, 24},
    };
    unsigned mods = 1 + b->mods; /* Shift 1, Alt 2, Ctrl 4 */
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (keys[i].code != b->code) {
            continue;
        }
        if (b->mods == 0 && keys[i].number == 0) {
            snprintf(out, cap, b->code >= UI_KEY_F1 ? ESC "O%c" : ESC "[%c", keys[i].letter);
        } else if (keys[i].number == 0) {
            snprintf(out, cap, ESC "[1;%u%c", mods, keys[i].letter);
        } else if (b->mods == 0) {
            snprintf(out, cap, ESC "[%d~", keys[i].number);
        } else {
            snprintf(out, cap, ESC "[%d;%u~", keys[i].number, mods);
        }
        return;
    }
    if (b->code == UI_KEY_WHEEL_UP || b->code == UI_KEY_WHEEL_DOWN) {
        snprintf(out, cap, ESC "[<%d;5;5M", b->code == UI_KEY_WHEEL_UP ? 64 : 65);
    } else if (b->code == UI_KEY_ENTER) {
        snprintf(out, cap, "%s", b->mods == UI_ALT ? ESC "\r" : ESC "[13;2u");
    } else if (b->code == UI_KEY_ESC) {
        snprintf(out, cap, ESC);
    } else {
        ck_assert(b->code < UI_KEY_NONE && b->mods == UI_CTRL);
        snprintf(out, cap, "%c", (char)(b->code & 0x1f));
    }
}

/* ---- every row ------------------------------------------------------------------------------ */

#define HOME_OF_VIEW ESC "[1;5H"
#define END_OF_VIEW  ESC "[1;5F"

/* The conversation is one reply of forty rows. */
static const struct row {
    enum ui_action action;
    const char *before, *before_shows; /* typed first, and what tells that it took hold */
    const char *shows, *gone;          /* what the key brings, and what it takes away */
    const char *after, *after_gone, *after_shows; /* and back to where it was */
} rows[] = {
    {UI_ACT_HELP, 0, 0, "arrows scroll", 0, ESC, "arrows scroll", 0},
    {UI_ACT_PALETTE, 0, 0, "Palette >", 0, ESC, "Palette >", 0},
    {UI_ACT_SEARCH, 0, 0, "search:", 0, ESC, "search:", 0},
    {UI_ACT_SEARCH_BACK, 0, 0, "search:", 0, ESC, "search:", 0},
    {UI_ACT_LENS, 0, 0, "lens: Left", 0, ESC, "lens: Left", 0},
    {UI_ACT_TEMP_DOWN, 0, 0, "T 0.75", 0, "/set temp 0.8\r", 0, "T 0.80"},
    {UI_ACT_TEMP_UP, 0, 0, "T 0.85", 0, "/set temp 0.8\r", 0, "T 0.80"},
    {UI_ACT_TOP_P_DOWN, 0, 0, "top-p 0.94", 0, "/set top-p 0.95\r", 0, "top-p 0.95"},
    {UI_ACT_TOP_P_UP, 0, 0, "top-p 0.96", 0, "/set top-p 0.95\r", 0, "top-p 0.95"},
    {UI_ACT_TOP_K_DOWN, "/set top-k 40\r", "top-k 40 (", "top-k 35", 0, "/set top-k 0\r", 0,
     "top-k 0 ("},
    {UI_ACT_TOP_K_UP, 0, 0, "top-k 5", 0, "/set top-k 0\r", 0, "top-k 0 ("},
    {UI_ACT_MIN_P_DOWN, "/set min-p 0.05\r", "min-p 0.05 (", "min-p 0.04", 0, "/set min-p 0\r", 0,
     "min-p 0 ("},
    {UI_ACT_MIN_P_UP, 0, 0, "min-p 0.01", 0, "/set min-p 0\r", 0, "min-p 0 ("},
    {UI_ACT_REPEAT_DOWN, "/set repeat-penalty 1.2\r", "penalty 1.2 (", "repeat-penalty 1.15", 0,
     "/set repeat-penalty 1\r", 0, "penalty 1 ("},
    {UI_ACT_REPEAT_UP, 0, 0, "repeat-penalty 1.05", 0, "/set repeat-penalty 1\r", 0, "penalty 1 ("},
    {UI_ACT_PRESET_EXTRACT, 0, 0, "T 0.00  ", 0, "/preset chat\r", 0, "T 0.80"},
    {UI_ACT_PRESET_CHAT, "/set temp 0.3\r", "T 0.30", "T 0.80", 0, 0, 0, 0},
    {UI_ACT_PRESET_CREATIVE, 0, 0, "T 1.00", 0, "/preset chat\r", 0, "T 0.80"},
    {UI_ACT_PAUSE, 0, 0, "no reply is under way", 0, "x\177", "no reply is", 0},
    {UI_ACT_STEP, 0, 0, "no reply is under way", 0, "x\177", "no reply is", 0},
    {UI_ACT_ANSWER_NOW, 0, 0, "the model is not thinking", 0, "x\177", "is not thinking", 0},
    {UI_ACT_FOLD, 0, 0, "no thoughts to fold", 0, "x\177", "no thoughts", 0},
    {UI_ACT_PAGE_UP, 0, 0, 0, "w0399.", END_OF_VIEW, 0, "w0399."},
    {UI_ACT_PAGE_DOWN, HOME_OF_VIEW, " you ", 0, " you ", END_OF_VIEW, 0, "w0399."},
    {UI_ACT_LINE_UP, 0, 0, 0, "w0399.", END_OF_VIEW, 0, "w0399."},
    {UI_ACT_LINE_DOWN, 0, 0, 0, 0, 0, 0, 0}, /* scrolls_down */
    {UI_ACT_WHEEL_UP, 0, 0, 0, "w0389.", END_OF_VIEW, 0, "w0399."},
    {UI_ACT_WHEEL_DOWN, 0, 0, 0, 0, 0, 0, 0}, /* scrolls_down */
    {UI_ACT_TO_START, 0, 0, " you ", "w0399.", END_OF_VIEW, 0, "w0399."},
    {UI_ACT_TO_END, HOME_OF_VIEW, " you ", "w0399.", " you ", 0, 0, 0},
    {UI_ACT_PICK, 0, 0, "pick: Up", 0, ESC, "pick: Up", 0},
    {UI_ACT_MOUSE, 0, 0, "the wheel scrolls", 0, "/set mouse off\r", 0, "mouse off ("},
    {UI_ACT_BRANCH_BACK, 0, 0, "no branches yet", 0, "x\177", "no branches", 0},
    {UI_ACT_BRANCH_ON, 0, 0, "no branches yet", 0, "x\177", "no branches", 0},
    {UI_ACT_NEWLINE, "one", " > one", 0, 0, "two", 0, "   two"},
    {UI_ACT_EDITOR, 0, 0, "the editor failed", 0, "x\177", "the editor", 0},
    {UI_ACT_STOP, "/stop\r", "no reply is", 0, "no reply is", 0, 0, 0},
    {UI_ACT_INTERRUPT, 0, 0, "/exit leaves", 0, "x\177", "/exit leaves", 0},
    {UI_ACT_REDRAW, 0, 0, 0, 0, 0, 0, 0},  /* redraws_all */
    {UI_ACT_SUSPEND, 0, 0, 0, 0, 0, 0, 0}, /* suspends */
    {UI_ACT_LEAVE, 0, 0, 0, 0, 0, 0, 0},   /* leaves */
};

static bool has_own_test(enum ui_action action) {
    return action == UI_ACT_LINE_DOWN || action == UI_ACT_WHEEL_DOWN || action == UI_ACT_REDRAW ||
           action == UI_ACT_SUSPEND || action == UI_ACT_LEAVE;
}

static void shows(const char *text) {
    ck_assert(text == NULL || pty_wait_text(&t.pty, text));
}

static void try_binding(const struct ui_binding *b, const struct row *r) {
    char bytes[32];
    bytes_of(b, bytes, sizeof bytes);
    if (r->before != NULL) {
        pty_type(&t.pty, r->before);
        shows(r->before_shows);
    }
    pty_type(&t.pty, bytes);
    ck_assert_msg(r->shows == NULL || pty_wait_text(&t.pty, r->shows), "%s: %s is not shown",
                  ui_action_name(r->action), r->shows);
    ck_assert_msg(r->gone == NULL || pty_wait_no_text(&t.pty, r->gone), "%s: %s is still shown",
                  ui_action_name(r->action), r->gone);
    if (r->after != NULL) {
        pty_type(&t.pty, r->after);
        ck_assert(r->after_gone == NULL || pty_wait_no_text(&t.pty, r->after_gone));
        shows(r->after_shows);
    }
    if (r->action == UI_ACT_NEWLINE) {
        pty_type(&t.pty, "\003");
        ck_assert(pty_wait_no_text(&t.pty, "   two"));
    }
}

static const struct row *row_of(enum ui_action action) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].action == action) {
            return &rows[i];
        }
    }
    ck_abort_msg("no test of '%s'", ui_action_name(action));
    return NULL;
}

static void start_with_reply(void) {
    tui_model_words(&t, 400, false);
    t.cols = 120;
    t.more_env[0] = "EDITOR=false";
    tui_start_idle(&t);
    pty_type(&t.pty, "go\r");
    ck_assert(pty_wait_text(&t.pty, "w0399."));
    ck_assert(pty_wait_text(&t.pty, "idle"));
}

START_TEST(every_key) {
    start_with_reply();
    for (size_t i = 0; ui_keymap_at(i) != NULL; i++) {
        const struct ui_binding *b = ui_keymap_at(i);
        const struct row *r = row_of(b->action);
        if (!has_own_test(b->action)) {
            try_binding(b, r);
        }
    }
    tui_finish(&t);
}
END_TEST

/* How far the reply on the screen is: the last word "wNNNN" that shows. */
static int last_word(void) {
    char *screen = pty_screen(&t.pty);
    int last = -1, n;
    for (char *at = screen; (at = strchr(at, 'w')) != NULL; at++) {
        last = sscanf(at, "w%4d", &n) == 1 && n > last ? n : last;
    }
    free(screen);
    return last;
}

static bool goes_on(struct pty *p, const void *from) {
    return last_word() > *(const int *)from;
}

static bool stands_at(struct pty *p, const void *word) {
    char text[16];
    snprintf(text, sizeof text, "w%04d", *(const int *)word);
    return pty_shows(p, text);
}

START_TEST(scrolls_down) {
    static const struct {
        const char *key;
        int rows;
    } keys[] = {{ESC "[1;2B", 1}, {ESC "[<65;5;5M", 3}};
    start_with_reply();
    pty_type(&t.pty, HOME_OF_VIEW);
    ck_assert(pty_wait_text(&t.pty, " you "));
    ck_assert(pty_wait_no_text(&t.pty, "w0399."));
    int at = last_word() + 10 * keys[_i].rows;
    ck_assert_int_lt(at, 390);
    pty_type(&t.pty, keys[_i].key);
    ck_assert(pty_wait(&t.pty, stands_at, &at, "further rows"));
    ck_assert_int_eq(last_word(), at);
    tui_finish(&t);
}
END_TEST

START_TEST(redraws_all) {
    start_with_reply();
    size_t before = t.pty.raw.len;
    pty_type(&t.pty, "\014");
    ck_assert(pty_wait_raw(&t.pty, before, "w0399."));
    ck_assert(pty_raw_has(&t.pty, before, "w0389."));
    tui_finish(&t);
}
END_TEST

START_TEST(suspends) {
    tui_model_text(&t, "ok");
    tui_start_idle(&t);
    size_t before = t.pty.raw.len;
    pty_type(&t.pty, "\032");
    /* no shell is there to stop for: the terminal is given back and taken again at once */
    ck_assert(pty_wait_raw(&t.pty, before, ESC "[?1049l"));
    pty_signal(&t.pty, SIGCONT);
    ck_assert(pty_wait_raw(&t.pty, before, ESC "[?1049h"));
    pty_type(&t.pty, "here");
    ck_assert(pty_wait_text(&t.pty, " > here"));
    pty_type(&t.pty, "\003");
    tui_finish(&t);
}
END_TEST

/* Ctrl+D deletes where there is something to delete, and leaves on an empty line. */
START_TEST(leaves) {
    tui_model_text(&t, "ok");
    tui_start_idle(&t);
    pty_type(&t.pty, "ab" ESC "[D\004c");
    ck_assert(pty_wait_text(&t.pty, " > ac"));
    pty_type(&t.pty, "\003\004");
    ck_assert(pty_wait_exit(&t.pty));
    ck_assert_int_eq(WEXITSTATUS(t.pty.status), 0);
    tui_assert_restored(&t);
    tui_end(&t);
}
END_TEST

/* ---- the README ----------------------------------------------------------------------------- */

/* Keys of the README that are no rows of the table: Enter and readline's, each tested elsewhere. */
static bool known_elsewhere(const char *name) {
    static const char *const names[] = {"Enter", "Ctrl+X Ctrl+E"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Tick off the rows whose key is named in "F5 / F6, Alt+Down"; returns how many names there are. */
static int tick_off(char *cell, bool *told) {
    int n = 0;
    cell[strcspn(cell, "|")] = '\0';
    char *clause = strstr(cell, " on an empty line");
    if (clause != NULL) {
        *clause = '\0';
    }
    for (char *at = cell; *at != '\0';) {
        at += strspn(at, " ,/");
        size_t length = strcspn(at, ",/");
        char *next = at + length;
        while (length > 0 && at[length - 1] == ' ') {
            length--;
        }
        if (length == 0) {
            break;
        }
        char name[64];
        uint32_t code;
        unsigned mods;
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        bool found = known_elsewhere(name);
        if (!found && ui_key_parse(name, strlen(name), &code, &mods)) {
            for (size_t i = 0; ui_keymap_at(i) != NULL; i++) {
                const struct ui_binding *b = ui_keymap_at(i);
                if (b->code == code && b->mods == mods) {
                    found = told[i] = true;
                }
            }
        }
        ck_assert_msg(found, "README names the key '%s', which no row of the table has", name);
        n++;
        at = next;
    }
    return n;
}

/* README's table of keys and the table that runs them name the same keys, so that every_key tests
 * each of README's. The wheel is told in words there. */
START_TEST(readme_names_every_key) {
    char path[512];
    bool told[256] = {false}, inside = false;
    int n = 0;
    snprintf(path, sizeof path, "%s/README.md", getenv("CHINWAG_SOURCE_ROOT"));
    FILE *f = fopen(path, "r");
    ck_assert_msg(f != NULL, "%s", path);
    char *line = NULL;
    size_t cap = 0;
    while (getline(&line, &cap, f) > 0) {
        inside = line[0] == '#' ? strcmp(line, "## Keys\n") == 0 : inside;
        if (inside && strncmp(line, "| ", 2) == 0 && strncmp(line, "| key ", 6) != 0) {
            n += tick_off(line + 2, told);
        }
    }
    free(line);
    fclose(f);
    ck_assert_int_gt(n, 50);
    for (size_t i = 0; ui_keymap_at(i) != NULL; i++) {
        const struct ui_binding *b = ui_keymap_at(i);
        char name[64];
        ui_key_name(b->code, b->mods, name, sizeof name);
        bool wheel = b->code == UI_KEY_WHEEL_UP || b->code == UI_KEY_WHEEL_DOWN;
        ck_assert_msg(told[i] || wheel, "README does not name the key '%s'", name);
    }
}
END_TEST

/* ---- in the middle of a reply --------------------------------------------------------------- */

START_TEST(pauses_and_steps) {
    static const char *const pause[] = {ESC "[20~", ESC "[1;5B"}; /* F9, Ctrl+Down */
    static const char *const step[] = {ESC "[21~", ESC "[1;2C"};  /* F10, Shift+Right */
    tui_model_words(&t, 2500, false);
    tui_start_idle(&t);
    pty_type(&t.pty, "go\r");
    pty_type(&t.pty, pause[_i]); /* at once: it cannot run away */
    ck_assert(pty_wait_text(&t.pty, "paused"));
    /* what was on its way arrives; a step is one token from wherever it stands then */
    int at = last_word();
    pty_type(&t.pty, step[_i]);
    ck_assert(pty_wait(&t.pty, goes_on, &at, "a first step"));
    for (int i = 0; i < 5; i++) {
        at = last_word() + 1;
        pty_type(&t.pty, step[_i]);
        ck_assert(pty_wait(&t.pty, stands_at, &at, "a step"));
        ck_assert_int_eq(last_word(), at);
    }
    ck_assert(pty_shows(&t.pty, "paused"));
    pty_type(&t.pty, ESC "[15~"); /* a setting, for the next token */
    ck_assert(pty_wait_text(&t.pty, "T 0.75*"));
    pty_type(&t.pty, step[_i]);
    ck_assert(pty_wait_text(&t.pty, "T 0.80 -> 0.75"));
    pty_type(&t.pty, pause[_i]); /* and on */
    at = last_word() + 30;
    ck_assert(pty_wait(&t.pty, goes_on, &at, "going on"));
    pty_type(&t.pty, step[_i]); /* pauses a running one */
    ck_assert(pty_wait_text(&t.pty, "paused"));
    pty_type(&t.pty, "\003"); /* stopping is not held up by a pause */
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, ESC "[1;5H"); /* its heading may be out of sight */
    ck_assert(pty_wait_text(&t.pty, "stopped"));
    pty_type(&t.pty, "more\r");                 /* the next reply is not paused */
    ck_assert(pty_wait_text(&t.pty, "w2499.")); /* how it was painted is another matter */
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_finish(&t);
}
END_TEST

START_TEST(presets_in_mid_reply) {
    tui_model_words(&t, 1500, false);
    tui_start_idle(&t);
    pty_type(&t.pty, "go\r" ESC "[20~");
    ck_assert(pty_wait_text(&t.pty, "paused"));
    pty_type(&t.pty, ESC "[21~");
    ck_assert(pty_wait_text(&t.pty, "w0000")); /* settings before the first token are no change */
    pty_type(&t.pty, ESC "[1;2S");             /* Shift+F4 */
    ck_assert(pty_wait_text(&t.pty, "T 1.00*"));
    /* both settings at one token */
    pty_type(&t.pty, ESC "[21~");
    ck_assert(pty_wait_text(&t.pty, "T 0.80 -> 1.00, top-p 0.95 -> 0.90"));
    pty_type(&t.pty, ESC "[1;3H"); /* Alt+Home */
    pty_type(&t.pty, ESC "[21~");
    ck_assert(pty_wait_text(&t.pty, "repeat-penalty 1.00 -> 1.05"));
    pty_type(&t.pty, "\003");
    ck_assert(pty_wait_text(&t.pty, "idle"));
    tui_finish(&t);
}
END_TEST

/* A model that thinks for ever: F12 ends it, F11 shows what it thought. */
START_TEST(answers_now_and_folds) {
    struct markov m;
    markov_init(&m);
    m.chat_template =
        "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + "
        "'<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}"
        "{{ '<|im_start|>assistant\n<think>' }}{% endif %}";
    markov_text(&m, "forty-two"); /* behind a line end: when the thinking was ended */
    markov_control(&m, MARKOV_END);
    markov_control(&m, MARKOV_THINK);
    for (int i = 0; i < 100; i++) {
        char word[16];
        snprintf(word, sizeof word, "t%04d ", i);
        markov_text(&m, word);
    }
    markov_loop(&m, 3); /* for ever */
    markov_save(&m, t.model);
    markov_free(&m);
    tui_start_idle(&t);
    pty_type(&t.pty, "what?\r" ESC "[20~"); /* and a pause at once: it cannot run away */
    ck_assert(pty_wait_text(&t.pty, "paused"));
    pty_type(&t.pty, ESC "[21~" ESC "[21~" ESC "[21~");
    ck_assert(pty_wait_text(&t.pty, "t0000"));
    pty_type(&t.pty, ESC "[20~");
    ck_assert(pty_wait_text(&t.pty, " thinking ")); /* the status bar; the heading has brackets */
    pty_type(&t.pty, ESC "[20~");
    ck_assert(pty_wait_text(&t.pty, "paused"));
    pty_type(&t.pty, ESC "[24~");
    ck_assert(pty_wait_text(&t.pty, "the thinking ends here"));
    pty_type(&t.pty, ESC "[20~");
    ck_assert(pty_wait_text(&t.pty, "   forty-two"));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    ck_assert(pty_wait_text(&t.pty, "(thinking)"));
    ck_assert(pty_wait_no_text(&t.pty, "t0")); /* folded, now that it is over */
    pty_type(&t.pty, ESC "[23~");              /* F11 */
    ck_assert(pty_wait_text(&t.pty, "t0"));
    pty_type(&t.pty, ESC "[1;5A"); /* Ctrl+Up */
    ck_assert(pty_wait_no_text(&t.pty, "t0"));
    tui_finish(&t);
}
END_TEST

START_TEST(branches_by_key) {
    tui_model_text(&t, "The reply.");
    tui_start_idle(&t);
    pty_type(&t.pty, "go\r");
    ck_assert(pty_wait_text(&t.pty, "The reply."));
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, "/regen\r");
    ck_assert(pty_wait_text(&t.pty, "│ branch 2/2")); /* behind the state: "idle" is of now */
    ck_assert(pty_wait_text(&t.pty, "idle"));
    pty_type(&t.pty, ESC "[1;4D");
    ck_assert(pty_wait_text(&t.pty, "branch 1/2"));
    pty_type(&t.pty, ESC "[1;2F");
    ck_assert(pty_wait_text(&t.pty, "branch 2/2"));
    tui_finish(&t);
}
END_TEST

/* ---- other keys ----------------------------------------------------------------------------- */

START_TEST(keys_from_config) {
    tui_model_text(&t, "ok");
    t.cols = 110;
    tui_write_text(&t, ".config/chinwag/config.ini",
                   "[keys]\n"
                   "temp-up = Ctrl+T, F9   ; two of them\n"
                   "nothing-like-that = F1\n");
    tui_start_idle(&t);
    ck_assert(pty_wait_text(&t.pty, "config.ini:3: unknown action 'nothing-like-that'"));
    ck_assert(pty_wait_text(&t.pty, "config.ini:2: F9 is taken from 'pause'"));
    pty_type(&t.pty, "\024");
    ck_assert(pty_wait_text(&t.pty, "T 0.85"));
    pty_type(&t.pty, ESC "[20~");
    ck_assert(pty_wait_text(&t.pty, "T 0.90"));
    pty_type(&t.pty, ESC "[17~"); /* F6 is nobody's now */
    pty_type(&t.pty, ESC "OQ"
                         "raise the temp");
    ck_assert(pty_wait_text(&t.pty, "temp-up  Ctrl+T, F9")); /* in the palette */
    pty_type(&t.pty, ESC);
    ck_assert(pty_wait_text(&t.pty, "T 0.90"));
    t.rows = 0;
    pty_type(&t.pty, ESC "OP");
    ck_assert(pty_wait_text(&t.pty, "Ctrl+T, F9")); /* and in the help */
    pty_type(&t.pty, ESC);
    ck_assert(pty_wait_no_text(&t.pty, "Ctrl+T, F9"));
    tui_finish(&t);
}
END_TEST

/* A mistake in [keys] is one as any in that file: told with its line, and nothing starts. */
START_TEST(keys_in_conflict) {
    static const struct {
        const char *config, *says;
    } cases[] = {
        {"[keys]\nhelp = F9\npause = Alt+P, F9\n",
         "config.ini:3: 'F9' is given to 'help' in line 2"},
        {"temp = 0.5\n\n[keys]\nhelp = Hyper+X\n", "config.ini:4: 'Hyper+X' is no key"},
        {"[keys]\nhelp = x\n", "config.ini:2: 'x' is needed for writing"},
    };
    tui_model_text(&t, "ok");
    tui_write_text(&t, ".config/chinwag/config.ini", cases[_i].config);
    t.cols = 160;
    tui_start(&t);
    ck_assert(pty_wait_exit(&t.pty));
    ck_assert_int_eq(WEXITSTATUS(t.pty.status), 1);
    ck_assert(pty_wait_text(&t.pty, cases[_i].says));
    tui_end(&t);
}
END_TEST

/* The mouse is the terminal's own until it is asked for, and again after. */
START_TEST(mouse_is_captured_on_request) {
    tui_model_words(&t, 400, false);
    tui_start_idle(&t);
    pty_type(&t.pty, "go\r");
    ck_assert(pty_wait_text(&t.pty, "w0399."));
    ck_assert(!pty_raw_has(&t.pty, 0, ESC "[?1006h"));
    pty_type(&t.pty, "/set mouse on\r");
    ck_assert(pty_wait_raw(&t.pty, 0, ESC "[?1006h"));
    pty_type(&t.pty, ESC "[<64;10;10M" ESC "[<64;10;10M");
    ck_assert(pty_wait_no_text(&t.pty, "w0399."));
    pty_type(&t.pty, ESC "[<0;10;10M" ESC "[<0;10;10m"); /* a click does nothing, nor types */
    pty_type(&t.pty, ESC "[<65;10;10M" ESC "[<65;10;10M");
    ck_assert(pty_wait_text(&t.pty, "w0399."));
    size_t before = t.pty.raw.len;
    pty_type(&t.pty, ESC "[23;2~"); /* Shift+F11 */
    ck_assert(pty_wait_raw(&t.pty, before, ESC "[?1006l"));
    ck_assert(!pty_shows(&t.pty, "10;10"));
    tui_finish(&t);
}
END_TEST

int main(void) {
    Suite *s = suite_create("tui keys");
    TCase *c = tcase_create("keys");
    tcase_set_timeout(c, 600);
    tcase_add_checked_fixture(c, setup, NULL);
    tcase_add_test(c, every_key);
    tcase_add_test(c, readme_names_every_key);
    tcase_add_loop_test(c, scrolls_down, 0, 2);
    tcase_add_test(c, redraws_all);
    tcase_add_test(c, suspends);
    tcase_add_test(c, leaves);
    tcase_add_loop_test(c, pauses_and_steps, 0, 2);
    tcase_add_test(c, presets_in_mid_reply);
    tcase_add_test(c, answers_now_and_folds);
    tcase_add_test(c, branches_by_key);
    tcase_add_test(c, keys_from_config);
    tcase_add_loop_test(c, keys_in_conflict, 0, 3);
    tcase_add_test(c, mouse_is_captured_on_request);
    suite_add_tcase(s, c);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
