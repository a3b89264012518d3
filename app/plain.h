/* SPDX-License-Identifier: MIT
 *
 * The chat in plain lines, for screen readers and for terminals that cannot place a cursor: the
 * same conversation and the same commands without a screen. Lines come from the terminal's own line
 * editing; what is said goes out as it comes, and nothing that is written can move a cursor or
 * change a colour. Main thread.
 */
#ifndef APP_PLAIN_H
#define APP_PLAIN_H

#include "chinwag/mem.h"

struct app;
struct app_face;
struct app_plain;

struct app_plain *app_plain_create(void);
void app_plain_destroy(struct app_plain *p); /* NULL is fine */

/* In place of the screen: around the event loop, and in it. */
void app_plain_begin(struct app *a);
void app_plain_end(struct app *a);
extern const struct app_face app_plain_face;
/* The program speaks: a line behind what was said before. */
void app_plain_say(struct app *a, bool error, const char *text);
/* The last reply is about to go on: what there is of it has been told. */
void app_plain_goes_on(struct app *a);
/* Lines that on the screen are a page of their own. */
void app_plain_page(struct app *a, const struct cw_buf *text);

#endif
