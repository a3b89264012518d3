/* SPDX-License-Identifier: MIT
 * Character classes and case mappings (unicode.h): utf8proc's data, and what it lacks. */
#include "unicode.h"

#include <utf8proc.h>

bool cw_jchar_is_space(uint32_t cp) {
    return (cp >= 0x09 && cp <= 0x0d) || (cp >= 0x1c && cp <= 0x20) || cp == 0x85 || cp == 0xa0 ||
           cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) || cp == 0x2028 || cp == 0x2029 ||
           cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

bool cw_jchar_is_line_end(uint32_t cp) {
    return (cp >= 0x0a && cp <= 0x0d) || (cp >= 0x1c && cp <= 0x1e) || cp == 0x85 || cp == 0x2028 ||
           cp == 0x2029;
}

static utf8proc_category_t category(uint32_t cp) {
    return utf8proc_category((utf8proc_int32_t)cp);
}

bool cw_jchar_is_alpha(uint32_t cp) {
    switch (category(cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return true;
    default:
        return false;
    }
}

bool cw_jchar_is_decimal(uint32_t cp) {
    return category(cp) == UTF8PROC_CATEGORY_ND;
}

struct span {
    uint32_t first, last;
};

static bool in_spans(const struct span *spans, size_t n, uint32_t cp) {
    for (size_t i = 0; i < n; i++) {
        if (cp >= spans[i].first && cp <= spans[i].last) {
            return true;
        }
    }
    return false;
}

bool cw_jchar_is_digit(uint32_t cp) {
    /* Numeric_Type=Digit in UnicodeData.txt. */
    static const struct span digits[] = {
        {0xb2, 0xb3},       {0xb9, 0xb9},       {0x1369, 0x1371},   {0x19da, 0x19da},
        {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
        {0x2474, 0x247c},   {0x2488, 0x2490},   {0x24ea, 0x24ea},   {0x24f5, 0x24fd},
        {0x24ff, 0x24ff},   {0x2776, 0x277e},   {0x2780, 0x2788},   {0x278a, 0x2792},
        {0x10a40, 0x10a43}, {0x10e60, 0x10e68}, {0x11052, 0x1105a}, {0x1f100, 0x1f10a},
    };
    return cw_jchar_is_decimal(cp) || in_spans(digits, sizeof digits / sizeof *digits, cp);
}

bool cw_jchar_is_word(uint32_t cp) {
    switch (category(cp)) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return true;
    default:
        return cp == '_' || cw_jchar_is_alpha(cp);
    }
}

bool cw_jchar_is_printable(uint32_t cp) {
    switch (category(cp)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return false;
    case UTF8PROC_CATEGORY_ZS:
        return cp == ' ';
    default:
        return true;
    }
}

bool cw_jchar_is_upper(uint32_t cp) {
    /* Other_Uppercase of PropList.txt. */
    static const struct span others[] = {
        {0x2160, 0x216f},   {0x24b6, 0x24cf},   {0x1f130, 0x1f149},
        {0x1f150, 0x1f169}, {0x1f170, 0x1f189},
    };
    return category(cp) == UTF8PROC_CATEGORY_LU ||
           in_spans(others, sizeof others / sizeof *others, cp);
}

bool cw_jchar_is_lower(uint32_t cp) {
    /* Other_Lowercase of PropList.txt. */
    static const struct span others[] = {
        {0xaa, 0xaa},       {0xba, 0xba},       {0x2b0, 0x2b8},     {0x2c0, 0x2c1},
        {0x2e0, 0x2e4},     {0x345, 0x345},     {0x37a, 0x37a},     {0x1d2c, 0x1d6a},
        {0x1d78, 0x1d78},   {0x1d9b, 0x1dbf},   {0x2071, 0x2071},   {0x207f, 0x207f},
        {0x2090, 0x209c},   {0x2170, 0x217f},   {0x24d0, 0x24e9},   {0x2c7c, 0x2c7d},
        {0xa69c, 0xa69d},   {0xa770, 0xa770},   {0xa7f8, 0xa7f9},   {0xab5c, 0xab5f},
        {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba},
    };
    return category(cp) == UTF8PROC_CATEGORY_LL ||
           in_spans(others, sizeof others / sizeof *others, cp);
}

bool cw_jchar_is_title(uint32_t cp) {
    return category(cp) == UTF8PROC_CATEGORY_LT;
}

bool cw_jchar_is_cased(uint32_t cp) {
    return cw_jchar_is_upper(cp) || cw_jchar_is_lower(cp) || cw_jchar_is_title(cp);
}

bool cw_jchar_is_case_ignorable(uint32_t cp) {
    switch (category(cp)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
        return true;
    default: /* Word_Break MidLetter, MidNumLet and Single_Quote of WordBreakProperty.txt */
        return cp == '\'' || cp == '.' || cp == ':' || cp == 0xb7 || cp == 0x387 || cp == 0x55f ||
               cp == 0x5f4 || cp == 0x2018 || cp == 0x2019 || cp == 0x2024 || cp == 0x2027 ||
               cp == 0xfe13 || cp == 0xfe52 || cp == 0xfe55 || cp == 0xff07 || cp == 0xff0e ||
               cp == 0xff1a;
    }
}

bool cw_jchar_is_name_start(uint32_t cp) {
    return cp == '_' || cw_jchar_is_alpha(cp) || category(cp) == UTF8PROC_CATEGORY_NL;
}

bool cw_jchar_is_name_part(uint32_t cp) {
    switch (category(cp)) {
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_PC:
        return true;
    default:
        return cw_jchar_is_name_start(cp);
    }
}

/* Characters whose upper or title case is more than one character (SpecialCasing.txt, the
 * mappings without conditions), in order. */
static const struct special_case {
    uint32_t cp, upper[CW_JCASE_MAX], title[CW_JCASE_MAX];
} special_cases[] = {
    {0x00df, {0x0053, 0x0053, 0}, {0x0053, 0x0073, 0}},
    {0x0149, {0x02bc, 0x004e, 0}, {0x02bc, 0x004e, 0}},
    {0x01f0, {0x004a, 0x030c, 0}, {0x004a, 0x030c, 0}},
    {0x0390, {0x0399, 0x0308, 0x0301}, {0x0399, 0x0308, 0x0301}},
    {0x03b0, {0x03a5, 0x0308, 0x0301}, {0x03a5, 0x0308, 0x0301}},
    {0x0587, {0x0535, 0x0552, 0}, {0x0535, 0x0582, 0}},
    {0x1e96, {0x0048, 0x0331, 0}, {0x0048, 0x0331, 0}},
    {0x1e97, {0x0054, 0x0308, 0}, {0x0054, 0x0308, 0}},
    {0x1e98, {0x0057, 0x030a, 0}, {0x0057, 0x030a, 0}},
    {0x1e99, {0x0059, 0x030a, 0}, {0x0059, 0x030a, 0}},
    {0x1e9a, {0x0041, 0x02be, 0}, {0x0041, 0x02be, 0}},
    {0x1f50, {0x03a5, 0x0313, 0}, {0x03a5, 0x0313, 0}},
    {0x1f52, {0x03a5, 0x0313, 0x0300}, {0x03a5, 0x0313, 0x0300}},
    {0x1f54, {0x03a5, 0x0313, 0x0301}, {0x03a5, 0x0313, 0x0301}},
    {0x1f56, {0x03a5, 0x0313, 0x0342}, {0x03a5, 0x0313, 0x0342}},
    {0x1f80, {0x1f08, 0x0399, 0}, {0x1f88, 0, 0}},
    {0x1f81, {0x1f09, 0x0399, 0}, {0x1f89, 0, 0}},
    {0x1f82, {0x1f0a, 0x0399, 0}, {0x1f8a, 0, 0}},
    {0x1f83, {0x1f0b, 0x0399, 0}, {0x1f8b, 0, 0}},
    {0x1f84, {0x1f0c, 0x0399, 0}, {0x1f8c, 0, 0}},
    {0x1f85, {0x1f0d, 0x0399, 0}, {0x1f8d, 0, 0}},
    {0x1f86, {0x1f0e, 0x0399, 0}, {0x1f8e, 0, 0}},
    {0x1f87, {0x1f0f, 0x0399, 0}, {0x1f8f, 0, 0}},
    {0x1f88, {0x1f08, 0x0399, 0}, {0x1f88, 0, 0}},
    {0x1f89, {0x1f09, 0x0399, 0}, {0x1f89, 0, 0}},
    {0x1f8a, {0x1f0a, 0x0399, 0}, {0x1f8a, 0, 0}},
    {0x1f8b, {0x1f0b, 0x0399, 0}, {0x1f8b, 0, 0}},
    {0x1f8c, {0x1f0c, 0x0399, 0}, {0x1f8c, 0, 0}},
    {0x1f8d, {0x1f0d, 0x0399, 0}, {0x1f8d, 0, 0}},
    {0x1f8e, {0x1f0e, 0x0399, 0}, {0x1f8e, 0, 0}},
    {0x1f8f, {0x1f0f, 0x0399, 0}, {0x1f8f, 0, 0}},
    {0x1f90, {0x1f28, 0x0399, 0}, {0x1f98, 0, 0}},
    {0x1f91, {0x1f29, 0x0399, 0}, {0x1f99, 0, 0}},
    {0x1f92, {0x1f2a, 0x0399, 0}, {0x1f9a, 0, 0}},
    {0x1f93, {0x1f2b, 0x0399, 0}, {0x1f9b, 0, 0}},
    {0x1f94, {0x1f2c, 0x0399, 0}, {0x1f9c, 0, 0}},
    {0x1f95, {0x1f2d, 0x0399, 0}, {0x1f9d, 0, 0}},
    {0x1f96, {0x1f2e, 0x0399, 0}, {0x1f9e, 0, 0}},
    {0x1f97, {0x1f2f, 0x0399, 0}, {0x1f9f, 0, 0}},
    {0x1f98, {0x1f28, 0x0399, 0}, {0x1f98, 0, 0}},
    {0x1f99, {0x1f29, 0x0399, 0}, {0x1f99, 0, 0}},
    {0x1f9a, {0x1f2a, 0x0399, 0}, {0x1f9a, 0, 0}},
    {0x1f9b, {0x1f2b, 0x0399, 0}, {0x1f9b, 0, 0}},
    {0x1f9c, {0x1f2c, 0x0399, 0}, {0x1f9c, 0, 0}},
    {0x1f9d, {0x1f2d, 0x0399, 0}, {0x1f9d, 0, 0}},
    {0x1f9e, {0x1f2e, 0x0399, 0}, {0x1f9e, 0, 0}},
    {0x1f9f, {0x1f2f, 0x0399, 0}, {0x1f9f, 0, 0}},
    {0x1fa0, {0x1f68, 0x0399, 0}, {0x1fa8, 0, 0}},
    {0x1fa1, {0x1f69, 0x0399, 0}, {0x1fa9, 0, 0}},
    {0x1fa2, {0x1f6a, 0x0399, 0}, {0x1faa, 0, 0}},
    {0x1fa3, {0x1f6b, 0x0399, 0}, {0x1fab, 0, 0}},
    {0x1fa4, {0x1f6c, 0x0399, 0}, {0x1fac, 0, 0}},
    {0x1fa5, {0x1f6d, 0x0399, 0}, {0x1fad, 0, 0}},
    {0x1fa6, {0x1f6e, 0x0399, 0}, {0x1fae, 0, 0}},
    {0x1fa7, {0x1f6f, 0x0399, 0}, {0x1faf, 0, 0}},
    {0x1fa8, {0x1f68, 0x0399, 0}, {0x1fa8, 0, 0}},
    {0x1fa9, {0x1f69, 0x0399, 0}, {0x1fa9, 0, 0}},
    {0x1faa, {0x1f6a, 0x0399, 0}, {0x1faa, 0, 0}},
    {0x1fab, {0x1f6b, 0x0399, 0}, {0x1fab, 0, 0}},
    {0x1fac, {0x1f6c, 0x0399, 0}, {0x1fac, 0, 0}},
    {0x1fad, {0x1f6d, 0x0399, 0}, {0x1fad, 0, 0}},
    {0x1fae, {0x1f6e, 0x0399, 0}, {0x1fae, 0, 0}},
    {0x1faf, {0x1f6f, 0x0399, 0}, {0x1faf, 0, 0}},
    {0x1fb2, {0x1fba, 0x0399, 0}, {0x1fba, 0x0345, 0}},
    {0x1fb3, {0x0391, 0x0399, 0}, {0x1fbc, 0, 0}},
    {0x1fb4, {0x0386, 0x0399, 0}, {0x0386, 0x0345, 0}},
    {0x1fb6, {0x0391, 0x0342, 0}, {0x0391, 0x0342, 0}},
    {0x1fb7, {0x0391, 0x0342, 0x0399}, {0x0391, 0x0342, 0x0345}},
    {0x1fbc, {0x0391, 0x0399, 0}, {0x1fbc, 0, 0}},
    {0x1fc2, {0x1fca, 0x0399, 0}, {0x1fca, 0x0345, 0}},
    {0x1fc3, {0x0397, 0x0399, 0}, {0x1fcc, 0, 0}},
    {0x1fc4, {0x0389, 0x0399, 0}, {0x0389, 0x0345, 0}},
    {0x1fc6, {0x0397, 0x0342, 0}, {0x0397, 0x0342, 0}},
    {0x1fc7, {0x0397, 0x0342, 0x0399}, {0x0397, 0x0342, 0x0345}},
    {0x1fcc, {0x0397, 0x0399, 0}, {0x1fcc, 0, 0}},
    {0x1fd2, {0x0399, 0x0308, 0x0300}, {0x0399, 0x0308, 0x0300}},
    {0x1fd3, {0x0399, 0x0308, 0x0301}, {0x0399, 0x0308, 0x0301}},
    {0x1fd6, {0x0399, 0x0342, 0}, {0x0399, 0x0342, 0}},
    {0x1fd7, {0x0399, 0x0308, 0x0342}, {0x0399, 0x0308, 0x0342}},
    {0x1fe2, {0x03a5, 0x0308, 0x0300}, {0x03a5, 0x0308, 0x0300}},
    {0x1fe3, {0x03a5, 0x0308, 0x0301}, {0x03a5, 0x0308, 0x0301}},
    {0x1fe4, {0x03a1, 0x0313, 0}, {0x03a1, 0x0313, 0}},
    {0x1fe6, {0x03a5, 0x0342, 0}, {0x03a5, 0x0342, 0}},
    {0x1fe7, {0x03a5, 0x0308, 0x0342}, {0x03a5, 0x0308, 0x0342}},
    {0x1ff2, {0x1ffa, 0x0399, 0}, {0x1ffa, 0x0345, 0}},
    {0x1ff3, {0x03a9, 0x0399, 0}, {0x1ffc, 0, 0}},
    {0x1ff4, {0x038f, 0x0399, 0}, {0x038f, 0x0345, 0}},
    {0x1ff6, {0x03a9, 0x0342, 0}, {0x03a9, 0x0342, 0}},
    {0x1ff7, {0x03a9, 0x0342, 0x0399}, {0x03a9, 0x0342, 0x0345}},
    {0x1ffc, {0x03a9, 0x0399, 0}, {0x1ffc, 0, 0}},
    {0xfb00, {0x0046, 0x0046, 0}, {0x0046, 0x0066, 0}},
    {0xfb01, {0x0046, 0x0049, 0}, {0x0046, 0x0069, 0}},
    {0xfb02, {0x0046, 0x004c, 0}, {0x0046, 0x006c, 0}},
    {0xfb03, {0x0046, 0x0046, 0x0049}, {0x0046, 0x0066, 0x0069}},
    {0xfb04, {0x0046, 0x0046, 0x004c}, {0x0046, 0x0066, 0x006c}},
    {0xfb05, {0x0053, 0x0054, 0}, {0x0053, 0x0074, 0}},
    {0xfb06, {0x0053, 0x0054, 0}, {0x0053, 0x0074, 0}},
    {0xfb13, {0x0544, 0x0546, 0}, {0x0544, 0x0576, 0}},
    {0xfb14, {0x0544, 0x0535, 0}, {0x0544, 0x0565, 0}},
    {0xfb15, {0x0544, 0x053b, 0}, {0x0544, 0x056b, 0}},
    {0xfb16, {0x054e, 0x0546, 0}, {0x054e, 0x0576, 0}},
    {0xfb17, {0x0544, 0x053d, 0}, {0x0544, 0x056d, 0}},
};

static const struct special_case *special(uint32_t cp) {
    size_t lo = 0, hi = sizeof special_cases / sizeof *special_cases;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (special_cases[mid].cp == cp) {
            return &special_cases[mid];
        }
        if (special_cases[mid].cp < cp) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return NULL;
}

static size_t copy_case(const uint32_t from[CW_JCASE_MAX], uint32_t out[CW_JCASE_MAX]) {
    size_t n = 0;
    while (n < CW_JCASE_MAX && from[n] != 0) {
        out[n] = from[n];
        n++;
    }
    return n;
}

static bool is_ascii_lower(uint32_t cp) {
    return cp >= 'a' && cp <= 'z';
}

size_t cw_jchar_upper(uint32_t cp, uint32_t out[CW_JCASE_MAX]) {
    if (cp < 0x80) {
        out[0] = is_ascii_lower(cp) ? cp - 'a' + 'A' : cp;
        return 1;
    }
    const struct special_case *s = special(cp);
    if (s != NULL) {
        return copy_case(s->upper, out);
    }
    out[0] = (uint32_t)utf8proc_toupper((utf8proc_int32_t)cp);
    return 1;
}

size_t cw_jchar_title(uint32_t cp, uint32_t out[CW_JCASE_MAX]) {
    if (cp < 0x80) {
        return cw_jchar_upper(cp, out);
    }
    const struct special_case *s = special(cp);
    if (s != NULL) {
        return copy_case(s->title, out);
    }
    out[0] = (uint32_t)utf8proc_totitle((utf8proc_int32_t)cp);
    return 1;
}

size_t cw_jchar_lower(uint32_t cp, uint32_t out[CW_JCASE_MAX]) {
    if (cp < 0x80) {
        out[0] = cp >= 'A' && cp <= 'Z' ? cp - 'A' + 'a' : cp;
        return 1;
    }
    if (cp == 0x130) { /* capital I with dot: the one lower case of two characters */
        out[0] = 'i';
        out[1] = 0x307;
        return 2;
    }
    out[0] = (uint32_t)utf8proc_tolower((utf8proc_int32_t)cp);
    return 1;
}
