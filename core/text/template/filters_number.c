/* SPDX-License-Identifier: MIT
 * Filters that make numbers, and reading numbers from text as Python does (builtins.h). */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builtins.h"
#include "unicode.h"

/* s without white space around it and without single underscores between digits, terminated.
 * NULL: an underscore stands where it may not. */
static char *number_text(struct cw_jrender *r, const struct cw_jstr *s) {
    const struct cw_jstr *t = cw_jstrip(r, s, NULL, CW_JSTRIP_LEFT | CW_JSTRIP_RIGHT).s;
    char *text = cw_jalloc(&r->arena, t->len + 1);
    size_t n = 0;
    cw_jcharge_bytes(r, t->len);
    for (size_t i = 0; i < t->len; i++) {
        char c = t->data[i];
        if (c == '_') {
            bool between = i > 0 && i + 1 < t->len && isalnum((unsigned char)t->data[i - 1]) &&
                           isalnum((unsigned char)t->data[i + 1]);
            if (!between) {
                return NULL;
            }
        } else if (c == '\0') {
            return NULL;
        } else {
            text[n++] = c;
        }
    }
    text[n] = '\0';
    return text;
}

static bool parse_int(struct cw_jrender *r, const struct cw_jstr *s, int64_t base, int64_t *out) {
    if (base != 0 && (base < 2 || base > 36)) {
        return false;
    }
    const char *p = number_text(r, s);
    if (p == NULL) {
        return false;
    }
    bool negative = *p == '-';
    p += *p == '-' || *p == '+';
    char mark = *p == '0' ? (char)tolower((unsigned char)p[1]) : '\0';
    int64_t marked = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (marked != 0 && (base == 0 || base == marked)) {
        base = marked;
        p += 2;
    } else if (base == 0) {
        base = 10;
    }
    uint64_t value = 0;
    const char *first = p;
    for (; *p != '\0'; p++) {
        int digit = isdigit((unsigned char)*p)   ? *p - '0'
                    : isalpha((unsigned char)*p) ? tolower((unsigned char)*p) - 'a' + 10
                                                 : 99;
        if (digit >= base) {
            return false;
        }
        if (value > ((uint64_t)INT64_MAX - (uint64_t)digit) / (uint64_t)base) {
            cw_jfailr(r, "integers beyond 64 bits are not supported");
        }
        value = value * (uint64_t)base + (uint64_t)digit;
    }
    *out = negative ? -(int64_t)value : (int64_t)value;
    return p > first;
}

static bool parse_float(struct cw_jrender *r, const struct cw_jstr *s, double *out) {
    const char *text = number_text(r, s);
    if (text == NULL || *text == '\0' || strpbrk(text, "xXpP(") != NULL) {
        return false; /* strtod would also read hexadecimal and nan(...) */
    }
    char *end;
    *out = strtod(text, &end);
    return *end == '\0';
}

static struct cw_jval int_of_float(struct cw_jrender *r, double f) {
    f = trunc(f);
    if (!(f >= -0x1p63 && f < 0x1p63)) {
        cw_jfailr(r, "integers beyond 64 bits are not supported");
    }
    return cw_jint((int64_t)f);
}

CW_JBUILTIN(filter_int) {
    struct cw_jval otherwise = arg[0].kind == CW_J_ABSENT ? cw_jint(0) : arg[0];
    int64_t i, base = arg[1].kind == CW_J_ABSENT ? 10 : cw_jas_int(r, arg[1], "'base'");
    double f;
    cw_jneed_defined(r, v);
    switch (v.kind) {
    case CW_J_BOOL:
    case CW_J_INT:
        return cw_jint(cw_jas_int(r, v, "a number"));
    case CW_J_FLOAT:
        f = v.f;
        break;
    case CW_J_STRING:
        if (parse_int(r, v.s, base, &i)) {
            return cw_jint(i);
        }
        if (!parse_float(r, v.s, &f)) {
            return otherwise;
        }
        break;
    default:
        return otherwise;
    }
    return isfinite(f) ? int_of_float(r, f) : otherwise;
}

CW_JBUILTIN(filter_float) {
    double f;
    cw_jneed_defined(r, v);
    if (cw_jis_number(v)) {
        return cw_jfloat(cw_jas_double(v));
    }
    if (v.kind == CW_J_STRING && parse_float(r, v.s, &f)) {
        return cw_jfloat(f);
    }
    return arg[0].kind == CW_J_ABSENT ? cw_jfloat(0) : arg[0];
}

CW_JBUILTIN(filter_abs) {
    cw_jneed_defined(r, v);
    if (!cw_jis_number(v)) {
        cw_jfailr(r, "TypeError: bad operand type for abs(): '%s'", cw_jtype_name(v));
    }
    if (v.kind == CW_J_FLOAT) {
        return cw_jfloat(fabs(v.f));
    }
    int64_t i = cw_jas_int(r, v, "a number");
    return i < 0 ? cw_jnegate(r, v) : cw_jint(i);
}

/* round(i, -places): to a multiple of 10^places, halves to the even one. */
static int64_t round_int(struct cw_jrender *r, int64_t i, int64_t places) {
    int64_t unit = 1;
    for (int64_t k = 0; k < places; k++) {
        if (__builtin_mul_overflow(unit, 10, &unit)) {
            return 0;
        }
    }
    int64_t rest = i % unit, down = i - rest, half = unit / 2;
    rest = rest < 0 ? -rest : rest;
    bool away = rest > half || (rest == half && unit > 1 && (down / unit) % 2 != 0);
    if (away && __builtin_add_overflow(down, i < 0 ? -unit : unit, &down)) {
        cw_jfailr(r, "integers beyond 64 bits are not supported");
    }
    return down;
}

CW_JBUILTIN(filter_round) {
    int64_t places = arg[0].kind == CW_J_ABSENT ? 0 : cw_jas_int(r, arg[0], "'precision'");
    const struct cw_jstr *method =
        arg[1].kind == CW_J_ABSENT ? NULL : cw_jas_str(r, arg[1], "'method'");
    cw_jneed_defined(r, v);
    if (!cw_jis_number(v)) {
        cw_jfailr(r, "TypeError: 'round' needs a number, not '%s'", cw_jtype_name(v));
    }
    if (places > 300 || places < -18) {
        cw_jfailr(r, "rounding to %lld places is not supported", (long long)places);
    }
    if (method == NULL || cw_jstr_is(method, "common")) {
        if (v.kind != CW_J_FLOAT) {
            int64_t i = cw_jas_int(r, v, "a number");
            return cw_jint(places >= 0 ? i : round_int(r, i, -places));
        }
        if (places < 0) {
            cw_jfailr(r, "rounding a float to %lld places is not supported", (long long)places);
        }
        char text[700]; /* 309 digits, a point and at most 300 decimals */
        snprintf(text, sizeof text, "%.*f", (int)places, v.f);
        return cw_jfloat(strtod(text, NULL));
    }
    bool up = cw_jstr_is(method, "ceil");
    if (!up && !cw_jstr_is(method, "floor")) {
        cw_jfailr(r, "'round' knows the methods common, ceil and floor only");
    }
    struct cw_jval unit = cw_jbinary(r, CW_JOP_POW, cw_jint(10), cw_jint(places));
    struct cw_jval scaled = cw_jbinary(r, CW_JOP_MUL, v, unit);
    if (scaled.kind == CW_J_FLOAT) {
        scaled = int_of_float(r, up ? ceil(scaled.f) : floor(scaled.f));
    }
    return cw_jbinary(r, CW_JOP_DIV, scaled, unit);
}

const struct cw_jbuiltin cw_jnumber_filters[] = {
    {"abs", "", filter_abs},
    {"float", "default?", filter_float},
    {"int", "default? base?", filter_int},
    {"round", "precision? method?", filter_round},
    {NULL, NULL, NULL},
};
