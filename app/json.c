/* SPDX-License-Identifier: MIT
 *
 * A thin layer over json-c. See json.h.
 */
#include "app/json.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

#include "chinwag/utf8.h"

struct json_object *app_json_text(const char *text, size_t n) {
    struct cw_buf b = {0};
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        int len = cw_utf8_decode(text + i, n - i, &cp);
        if (len > 0) {
            cw_buf_add(&b, text + i, (size_t)len);
            i += (size_t)len;
        } else {
            cw_buf_puts(&b, "\xef\xbf\xbd");
            i++;
        }
    }
    if (b.len > INT_MAX) {
        cw_buf_clear(&b); /* json-c counts in int; no text here comes near */
    }
    struct json_object *obj = json_object_new_string_len(b.data ? b.data : "", (int)b.len);
    cw_buf_free(&b);
    return obj;
}

struct json_object *app_json_number(double v) {
    char text[40];
    if (!isfinite(v)) {
        return NULL; /* json-c's null */
    }
    snprintf(text, sizeof text, "%.6g", v);
    return json_object_new_double_s(v, text);
}

struct json_object *app_json_ids(const int32_t *ids, size_t n) {
    struct json_object *list = json_object_new_array();
    for (size_t i = 0; i < n; i++) {
        json_object_array_add(list, json_object_new_int(ids[i]));
    }
    return list;
}

void app_json_put(struct cw_buf *out, struct json_object *obj, bool pretty) {
    int flags = JSON_C_TO_STRING_NOSLASHESCAPE;
    if (pretty) {
        flags |= JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED;
    }
    cw_buf_puts(out, json_object_to_json_string_ext(obj, flags));
    cw_buf_putc(out, '\n');
    json_object_put(obj);
}

struct json_object *app_json_parse(const char *text, size_t n, struct cw_err *err) {
    struct json_tokener *t = json_tokener_new_ex(64);
    struct json_object *obj = NULL;
    enum json_tokener_error why = json_tokener_error_size;
    size_t end = 0;
    if (t && n <= INT_MAX - 1) {
        json_tokener_set_flags(t, JSON_TOKENER_STRICT);
        obj = json_tokener_parse_ex(t, text, (int)n);
        why = json_tokener_get_error(t);
        end = json_tokener_get_parse_end(t);
        if (why == json_tokener_continue) {
            /* A number at the very end is complete only once something else follows. */
            obj = json_tokener_parse_ex(t, "\n", 1);
            why = json_tokener_get_error(t);
            end = n;
        }
    }
    for (; why == json_tokener_success && end < n; end++) {
        char c = text[end];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
            why = json_tokener_error_parse_unexpected;
            break;
        }
    }
    if (t) {
        json_tokener_free(t);
    }
    if (why != json_tokener_success) {
        json_object_put(obj);
        cw_fail(err, CW_EFORMAT, "not valid JSON (%s at byte %zu)",
                why == json_tokener_continue ? "it ends too early" : json_tokener_error_desc(why),
                end);
        return NULL;
    }
    if (!obj) {
        cw_fail(err, CW_EFORMAT, "null where an object or a list should be");
    }
    return obj;
}
