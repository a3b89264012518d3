/* SPDX-License-Identifier: MIT
 *
 * See plain.h.
 *
 * The transcript is kept as for the screen; here it is followed instead of drawn: whatever blocks
 * came, and whatever text came to those that are not finished, is written out. So nothing that
 * makes the conversation knows which of the two it is for. Paths are told once: of the messages of
 * a new path only those are written that the last one did not have.
 *
 * Lines are edited by the terminal itself, whose modes are never changed. It holds no more than
 * LINE_BYTES of one and drops the rest without a word, so such a line is refused.
 */
#include "app/plain.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/app_impl.h"
#include "app/commands.h"
#include "chinwag/clock.h"
#include "chinwag/utf8.h"
#include "ui/term.h"

enum {
    LINE_BYTES = 4095, /* N_TTY_BUF_SIZE of Linux, less the newline */
    DRAFT_SHOWN = 400, /* bytes of what stands ready to be sent */
    ROWS = 24,         /* of the view that nobody sees */
    COLS = 80,
};

/* A block that more text may come to. */
struct open_block {
    uint32_t block;
    size_t at;   /* bytes written */
    size_t mark; /* marks written */
    char *note;  /* as it was when the block began */
};

struct app_plain {
    bool terminal; /* standard output is one: what is typed stands there */
    struct cw_buf out;
    bool at_start; /* of a line */
    bool prompted; /* the prompt stands, and nothing behind it */
    bool own;      /* the next message of the person is the one just typed */

    uint32_t seen; /* the last block that was looked at */
    uint32_t last; /* the block that wrote last */
    struct open_block *open;
    size_t n_open;
    uint64_t *told; /* ids of the messages written, along the path */
    size_t n_told;
    uint64_t chat, parent; /* the conversation they are of */

    struct cw_buf line;    /* bytes since the last newline */
    struct cw_buf message; /* lines since the last message */
    bool open_message;     /* more lines belong to it */
    bool block;            /* until the next """ */
    bool cut;              /* the terminal has dropped a part of it */
    bool attached;         /* the draft goes in front of what is typed */
    uint64_t drafts;       /* version of the draft that was told */
};

struct app_plain *app_plain_create(void) {
    struct app_plain *p = cw_calloc(1, sizeof *p);
    p->terminal = isatty(STDOUT_FILENO);
    p->at_start = true;
    return p;
}

void app_plain_destroy(struct app_plain *p) {
    if (p == NULL) {
        return;
    }
    for (size_t i = 0; i < p->n_open; i++) {
        free(p->open[i].note);
    }
    free(p->open);
    free(p->told);
    cw_buf_free(&p->out);
    cw_buf_free(&p->line);
    cw_buf_free(&p->message);
    free(p);
}

/* ---- writing -------------------------------------------------------------------------------- */

static void flush(struct app *a) {
    struct app_plain *p = a->plain;
    size_t at = 0;
    while (at < p->out.len) {
        ssize_t n = write(STDOUT_FILENO, p->out.data + at, p->out.len - at);
        if (n < 0 && errno == EAGAIN) { /* someone left it non-blocking */
            struct pollfd fd = {.fd = STDOUT_FILENO, .events = POLLOUT};
            poll(&fd, 1, -1);
        } else if (n < 0 && errno != EINTR) {
            a->leave = true; /* nobody reads any more */
            break;
        }
        at += n > 0 ? (size_t)n : 0;
    }
    cw_buf_clear(&p->out);
}

static void fresh_line(struct app_plain *p) {
    if (!p->at_start) {
        cw_buf_putc(&p->out, '\n');
    }
    p->at_start = true;
    p->prompted = false;
}

/* Text that was not written here is hostile: only its line ends and tabs act. */
static void put(struct app_plain *p, const char *text, size_t n) {
    enum { PIECE = 256 };
    char shown[PIECE * 10 + 1]; /* "\u{10ffff}" for one character at the worst */
    for (size_t i = 0; i < n;) {
        size_t k = n - i < PIECE ? n - i : cw_utf8_complete(text + i, PIECE);
        size_t special = 0;
        while (special < k && memchr("\n\t\r", text[i + special], 3) == NULL) {
            special++;
        }
        k = special < k ? special : k;
        cw_buf_add(&p->out, shown, cw_printable(shown, sizeof shown, text + i, k));
        p->at_start = p->at_start && k == 0;
        i += k;
        if (i < n && (text[i] == '\n' || text[i] == '\t' || text[i] == '\r')) {
            i += text[i] == '\r' && i + 1 < n && text[i + 1] == '\n';
            p->at_start = text[i] != '\t';
            cw_buf_putc(&p->out, p->at_start ? '\n' : '\t');
            i++;
        }
    }
}

static void put_str(struct app_plain *p, const char *text) {
    put(p, text, strlen(text));
}

/* The notes of headings separate by a dot in the middle, which is read out badly. */
static void put_note(struct app_plain *p, const char *note) {
    static const char dot[] = " · ";
    for (const char *at; (at = strstr(note, dot)) != NULL; note = at + sizeof dot - 1) {
        put(p, note, (size_t)(at - note));
        put_str(p, ", ");
    }
    put_str(p, note);
}

/* ---- following the transcript --------------------------------------------------------------- */

static size_t message_of(const struct app *a, uint32_t block) {
    for (size_t i = a->chat.n; i-- > 0;) {
        if (a->chat.messages[i]->block == block || a->chat.messages[i]->thinking_block == block) {
            return i;
        }
    }
    return SIZE_MAX;
}

static void tell(struct app_plain *p, const struct app *a, size_t n) {
    p->told = cw_reallocarray(p->told, n + 1, sizeof *p->told);
    for (size_t i = p->n_told; i < n; i++) {
        p->told[i] = 0;
    }
    p->told[n] = a->chat.messages[n]->id;
    p->n_told = n + 1;
}

/* What was told goes for the conversation at hand: for a copy of the one before as well. */
static void take_path(struct app_plain *p, const struct app *a) {
    const struct chat *c = &a->chat;
    p->n_told = p->n_told < c->n ? p->n_told : c->n;
    if (c->id != p->chat) {
        bool kin = p->chat != 0 && (c->parent_id == p->chat || p->parent == c->id);
        for (size_t i = 0; kin && i < c->n; i++) {
            tell(p, a, i);
        }
        p->chat = c->id;
        p->parent = c->parent_id;
    }
}

/* New text of a block; false: no more will come. */
static bool go_on(struct app_plain *p, const struct app *a, struct open_block *o,
                  const struct ui_block_view *v) {
    const char *label;
    size_t end = v->text.len;
    if (!v->finished) {
        end = cw_utf8_complete(v->text.data ? v->text.data : "", end);
        end -= end > 0 && v->text.data[end - 1] == '\r'; /* a newline may follow */
    }
    if (p->last != v->block && (end > o->at || o->mark < v->n_marks)) {
        fresh_line(p);
        p->last = v->block;
    }
    for (;;) {
        size_t offset = SIZE_MAX;
        label = ui_transcript_mark_at(a->transcript, v->block, o->mark, &offset);
        size_t to = label != NULL && offset < end ? offset : end;
        if (to > o->at) {
            put(p, v->text.data + o->at, to - o->at);
            o->at = to;
        }
        if (label == NULL || offset > end) {
            break;
        }
        put_str(p, p->at_start ? "[" : " [");
        put_str(p, label);
        put_str(p, "] ");
        o->mark++;
    }
    if (!v->finished) {
        return true;
    }
    if (v->note != NULL && (o->note == NULL || strcmp(v->note, o->note) != 0)) {
        fresh_line(p);
        put_str(p, "-- message ");
        put_note(p, v->note);
        fresh_line(p);
    }
    size_t i = message_of(a, v->block);
    if (i != SIZE_MAX && a->chat.messages[i]->block == v->block) {
        tell(p, a, i);
    }
    return false;
}

static void begin(struct app_plain *p, const struct ui_block_view *v) {
    fresh_line(p);
    p->last = v->block;
    switch (v->kind) {
    case UI_BLOCK_ERROR:
        put_str(p, "-- error: ");
        return;
    case UI_BLOCK_NOTICE:
        put_str(p, "-- ");
        return;
    default:
        break;
    }
    if (v->note != NULL) {
        put_str(p, "[");
        put_note(p, v->note);
        put_str(p, "] ");
    }
    put_str(p, v->heading != NULL ? v->heading : "");
    put_str(p, ": ");
}

/* Whether a block is not to be written: it was, or the person typed it just now. */
static bool is_known(struct app_plain *p, const struct app *a, const struct ui_block_view *v) {
    size_t i = message_of(a, v->block);
    if (i == SIZE_MAX || !v->finished) {
        return false;
    }
    if (i < p->n_told && p->told[i] == a->chat.messages[i]->id) {
        return true;
    }
    if (v->kind == UI_BLOCK_USER && p->own && p->terminal) {
        tell(p, a, i);
        return true;
    }
    return false;
}

static void follow(struct app *a) {
    struct app_plain *p = a->plain;
    struct ui_block_view v;
    take_path(p, a);
    size_t kept = 0;
    for (size_t i = 0; i < p->n_open; i++) {
        struct open_block *o = &p->open[i];
        bool there = ui_transcript_next(a->transcript, o->block - 1, &v) && v.block == o->block;
        if (there && go_on(p, a, o, &v)) {
            p->open[kept++] = *o;
        } else {
            free(o->note);
        }
    }
    p->n_open = kept;
    while (ui_transcript_next(a->transcript, p->seen, &v)) {
        p->seen = v.block;
        if (is_known(p, a, &v)) {
            continue;
        }
        struct open_block o = {.block = v.block, .note = v.note ? cw_strdup(v.note) : NULL};
        begin(p, &v);
        if (go_on(p, a, &o, &v)) {
            p->open = cw_reallocarray(p->open, p->n_open + 1, sizeof *p->open);
            p->open[p->n_open++] = o;
        } else {
            free(o.note);
        }
    }
}

void app_plain_goes_on(struct app *a) {
    struct app_plain *p = a->plain;
    struct ui_block_view v;
    if (p == NULL) {
        return;
    }
    p->n_told = p->n_told < a->chat.n ? p->n_told : a->chat.n - 1;
    while (ui_transcript_next(a->transcript, p->seen, &v)) {
        p->seen = v.block;
        if (!v.finished) {
            begin(p, &v);
            p->open = cw_reallocarray(p->open, p->n_open + 1, sizeof *p->open);
            struct open_block *o = &p->open[p->n_open++];
            *o = (struct open_block){
                .block = v.block, .at = v.text.len, .note = v.note ? cw_strdup(v.note) : NULL};
            size_t offset;
            while (ui_transcript_mark_at(a->transcript, v.block, o->mark, &offset) != NULL &&
                   offset < o->at) {
                o->mark++; /* what changed since comes with the text */
            }
        }
    }
}

void app_plain_say(struct app *a, bool error, const char *text) {
    struct app_plain *p = a->plain;
    follow(a);
    fresh_line(p);
    put_str(p, error ? "-- error: " : "-- ");
    put_str(p, text);
    fresh_line(p);
    p->last = 0;
}

void app_plain_page(struct app *a, const struct cw_buf *text) {
    struct app_plain *p = a->plain;
    follow(a);
    fresh_line(p);
    put(p, text->data, text->len);
    fresh_line(p);
    p->last = 0;
}

/* ---- reading -------------------------------------------------------------------------------- */

static void remember(struct app *a, const char *text) {
    struct cw_err err = {0};
    if (!a->persist.off && ui_input_remember(text, &err) != CW_OK) {
        app_tell(a, true, err.text, strlen(err.text));
    }
}

static void run_command(struct app *a, const char *text) {
    struct app_plain *p = a->plain;
    size_t n_attached = a->draft.n_attached;
    uint64_t version = ui_input_version(), asked = a->persist.serial;
    size_t said = p->out.len;
    remember(a, text);
    app_command_run(a, text);
    follow(a);
    bool answered = p->out.len > said || a->persist.serial != asked; /* or will be */
    if (!answered && a->phase != APP_RUNNING && !a->leave) {
        app_plain_say(a, false, "done"); /* on the screen it shows */
    }
    if (a->draft.n_attached > n_attached) {
        p->attached = true;
    } else if (ui_input_version() != version) {
        p->attached = false;
    }
}

static void send_message(struct app *a, const char *text) {
    struct app_plain *p = a->plain;
    struct cw_buf whole = {0};
    bool blank = text[strspn(text, " \t\n")] == '\0';
    size_t n, n_queue = a->n_queue;
    const char *draft = ui_input_text(&n);
    if (n > 0 && (blank || p->attached)) {
        cw_buf_add(&whole, draft, n);
    }
    if (!blank) {
        cw_buf_printf(&whole, "%s%s", whole.len > 0 && draft[n - 1] != '\n' ? "\n" : "", text);
    }
    if (whole.len == 0) {
        return;
    }
    ui_input_clear();
    p->attached = false;
    p->drafts = ui_input_version();
    app_draft_sent(a);
    remember(a, whole.data);
    p->own = true;
    app_submit(a, whole.data);
    follow(a);
    p->own = false;
    if (a->n_queue > n_queue) {
        app_plain_say(a, false,
                      a->phase == APP_LOADING ? "it waits for the model"
                                              : "it waits for the reply to end");
    }
    cw_buf_free(&whole);
}

static void message_ends(struct app *a) {
    struct app_plain *p = a->plain;
    char *text = ui_input_resolve(p->message.data != NULL ? p->message.data : "");
    bool cut = p->cut;
    cw_buf_clear(&p->message);
    p->open_message = p->block = p->cut = false;
    if (cut) {
        app_plain_say(a, true,
                      "the terminal has cut a line, it takes 4095 bytes: nothing was sent. /read "
                      "FILE takes the text of a file; between two \"\"\" stand many lines");
    } else if (text[0] == '/' && app_is_command(text)) {
        run_command(a, text);
    } else {
        send_message(a, text);
    }
    free(text);
}

static void on_line(struct app *a, const char *text, size_t n) {
    struct app_plain *p = a->plain;
    bool open;
    if (p->block) {
        open = strstr(text, "\"\"\"") == NULL;
    } else if (p->open_message) {
        open = n > 0 && text[n - 1] == '\\';
    } else {
        open = ui_input_is_open(text);
        p->block = open && strncmp(text + strspn(text, " \t"), "\"\"\"", 3) == 0;
    }
    cw_buf_add(&p->message, text, n);
    p->open_message = open;
    if (!open) {
        message_ends(a);
    } else if (n > 0 && text[n - 1] == '\\') {
        p->message.data[p->message.len - 1] = '\n';
    } else {
        cw_buf_putc(&p->message, '\n');
    }
}

/* The bytes of a line as text: valid, and without NUL. */
static void take_line(struct app *a) {
    struct app_plain *p = a->plain;
    struct cw_buf text = {0};
    for (size_t i = 0; i < p->line.len;) {
        uint32_t c;
        int bytes = cw_utf8_decode(p->line.data + i, p->line.len - i, &c);
        if (bytes == 0) {
            cw_buf_puts(&text, "\xef\xbf\xbd");
        } else if (c != 0) {
            cw_buf_add(&text, p->line.data + i, (size_t)bytes);
        }
        i += bytes > 0 ? (size_t)bytes : 1;
    }
    cw_buf_clear(&p->line);
    p->at_start = p->at_start || p->terminal; /* Enter was shown */
    p->prompted = false;
    on_line(a, text.data != NULL ? text.data : "", text.len);
    cw_buf_free(&text);
}

/* Nothing comes behind what was typed. */
static void on_end(struct app *a) {
    struct app_plain *p = a->plain;
    if (p->line.len > 0) {
        take_line(a);
    } else if (p->open_message) {
        message_ends(a);
    } else {
        a->leave = true;
    }
}

static void read_lines(struct app *a, bool readable) {
    struct app_plain *p = a->plain;
    char bytes[16384];
    if (!readable || a->leave) {
        return;
    }
    ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
    if (n < 0 && errno != EINTR && errno != EAGAIN) {
        a->leave = true; /* the terminal is gone */
        a->leave_signal = UI_SIGNAL_HUP;
    } else if (n == 0) {
        on_end(a);
    }
    for (ssize_t at = 0; at < n && !a->leave;) {
        const char *end = memchr(bytes + at, '\n', (size_t)(n - at));
        size_t length = end != NULL ? (size_t)(end - bytes - at) : (size_t)(n - at);
        cw_buf_add(&p->line, bytes + at, length);
        at += (ssize_t)length + (end != NULL);
        p->cut = p->cut || length >= LINE_BYTES;
        if (end != NULL) {
            take_line(a);
        }
    }
}

/* What stands ready to be sent, when that has changed. */
static void tell_draft(struct app *a) {
    struct app_plain *p = a->plain;
    size_t n;
    const char *text = ui_input_text(&n);
    if (p->drafts == ui_input_version() || a->phase == APP_LOADING || a->phase == APP_RUNNING) {
        return;
    }
    p->drafts = ui_input_version();
    if (n == 0) {
        p->attached = false;
    } else if (p->attached) {
        app_plain_say(a, false, "it goes in front of the next message; Ctrl+C takes it out");
    } else {
        fresh_line(p);
        put_str(p, "-- ready to be sent: ");
        put(p, text, n <= DRAFT_SHOWN ? n : cw_utf8_complete(text, DRAFT_SHOWN));
        put_str(p, n <= DRAFT_SHOWN ? "" : " ...");
        app_plain_say(a, false, "Enter alone sends it, other text takes its place");
    }
}

static void prompt(struct app *a) {
    struct app_plain *p = a->plain;
    struct pollfd more = {.fd = STDIN_FILENO, .events = POLLIN};
    if (p->open_message && poll(&more, 1, 0) > 0) {
        return; /* a paste: its lines are there already */
    }
    bool busy = a->phase == APP_LOADING || a->phase == APP_RUNNING;
    if (p->terminal && !p->prompted && (!busy || p->open_message)) {
        fresh_line(p);
        cw_buf_puts(&p->out, p->open_message ? "... " : "> ");
        p->at_start = false;
        p->prompted = true;
    }
}

static void on_signals(struct app *a, unsigned flags) {
    struct app_plain *p = a->plain;
    if (flags & UI_SIGNAL_INT) {
        p->at_start = p->at_start && !p->terminal; /* behind "^C" */
        p->prompted = false;
        cw_buf_clear(&p->line); /* the terminal forgets the rest of it */
        if (p->open_message) {
            cw_buf_clear(&p->message);
            p->open_message = p->block = p->cut = false;
        } else {
            app_interrupt(a);
        }
    }
}

/* ---- the face ------------------------------------------------------------------------------- */

static void show(struct app *a, double now) {
    follow(a);
    tell_draft(a);
    prompt(a);
    flush(a);
}

static double nothing_due(const struct app *a) {
    return -1;
}

const struct app_face app_plain_face = {
    .show = show, .due = nothing_due, .read = read_lines, .signals = on_signals};

void app_plain_begin(struct app *a) {
    ui_transcript_resize(a->transcript, ROWS, COLS);
    app_plain_say(a, false,
                  "chinwag " CHINWAG_VERSION " in plain lines: /help lists the commands, Ctrl+C "
                  "stops a reply, Ctrl+D leaves");
}

void app_plain_end(struct app *a) {
    follow(a);
    fresh_line(a->plain);
    flush(a);
}
