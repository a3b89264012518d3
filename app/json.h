/* SPDX-License-Identifier: MIT
 *
 * What the machine commands need beyond json-c: text that may hold any byte, made valid.
 */
#ifndef APP_JSON_H
#define APP_JSON_H

#include <json-c/json.h>

#include "chinwag/err.h"
#include "chinwag/mem.h"

/* A string of text[0..n); each byte that is not part of valid UTF-8 becomes U+FFFD. */
struct json_object *app_json_text(const char *text, size_t n);
/* A number with as many digits as are worth reading; null when it is not finite. */
struct json_object *app_json_number(double v);
struct json_object *app_json_ids(const int32_t *ids, size_t n);
/* Append obj on one line (or readable, over several) and a newline, and drop the reference. */
void app_json_put(struct cw_buf *out, struct json_object *obj, bool pretty);

/* Parse text[0..n) as exactly one JSON value. NULL after filling err. */
struct json_object *app_json_parse(const char *text, size_t n, struct cw_err *err);

#endif
