/* SPDX-License-Identifier: MIT
 * Characters as Python's str and re see them. Pure functions, any thread. */
#ifndef CHINWAG_TEMPLATE_UNICODE_H
#define CHINWAG_TEMPLATE_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool cw_jchar_is_space(uint32_t cp);
bool cw_jchar_is_line_end(uint32_t cp); /* where splitlines() cuts */
bool cw_jchar_is_word(uint32_t cp);     /* \w: letters, digits, underscore */
bool cw_jchar_is_alpha(uint32_t cp);
bool cw_jchar_is_decimal(uint32_t cp);   /* a digit of a decimal system */
bool cw_jchar_is_digit(uint32_t cp);     /* also superscripts and the like */
bool cw_jchar_is_printable(uint32_t cp); /* repr() shows it as it is */
bool cw_jchar_is_upper(uint32_t cp);
bool cw_jchar_is_lower(uint32_t cp);
bool cw_jchar_is_title(uint32_t cp);
bool cw_jchar_is_cased(uint32_t cp);
bool cw_jchar_is_name_start(uint32_t cp); /* may begin an identifier */
bool cw_jchar_is_name_part(uint32_t cp);

/* Full case mappings: one character may become up to three. Return how many. */
enum { CW_JCASE_MAX = 3 };
size_t cw_jchar_upper(uint32_t cp, uint32_t out[CW_JCASE_MAX]);
size_t cw_jchar_title(uint32_t cp, uint32_t out[CW_JCASE_MAX]);
size_t cw_jchar_lower(uint32_t cp, uint32_t out[CW_JCASE_MAX]);
/* Characters that lower() passes over when it asks whether a sigma ends a word. */
bool cw_jchar_is_case_ignorable(uint32_t cp);

#endif
