/* SPDX-License-Identifier: MIT
 * Operators, as Python has them (builtins.h). */
#include <math.h>
#include <string.h>

#include "builtins.h"

static const char *const symbols[] = {
    "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};

static _Noreturn void fail_operands(struct cw_jrender *r, enum cw_jop op, struct cw_jval a,
                                    struct cw_jval b) {
    cw_jfailr(r, "TypeError: unsupported operand type(s) for %s: '%s' and '%s'", symbols[op],
              cw_jtype_name(a), cw_jtype_name(b));
}

static _Noreturn void fail_overflow(struct cw_jrender *r) {
    cw_jfailr(r, "integers beyond 64 bits are not supported");
}

static int64_t floor_div(struct cw_jrender *r, int64_t a, int64_t b) {
    if (a == INT64_MIN && b == -1) {
        fail_overflow(r);
    }
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t int_power(struct cw_jrender *r, int64_t base, int64_t exponent) {
    int64_t result = 1;
    for (;;) {
        if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
            fail_overflow(r);
        }
        exponent >>= 1;
        if (exponent == 0) {
            return result;
        }
        if (__builtin_mul_overflow(base, base, &base)) {
            fail_overflow(r);
        }
    }
}

static struct cw_jval int_binary(struct cw_jrender *r, enum cw_jop op, int64_t a, int64_t b) {
    int64_t n;
    bool overflow = false;
    switch (op) {
    case CW_JOP_ADD:
        overflow = __builtin_add_overflow(a, b, &n);
        break;
    case CW_JOP_SUB:
        overflow = __builtin_sub_overflow(a, b, &n);
        break;
    case CW_JOP_MUL:
        overflow = __builtin_mul_overflow(a, b, &n);
        break;
    case CW_JOP_FLOORDIV:
        n = floor_div(r, a, b);
        break;
    case CW_JOP_MOD:
        n = b == -1 ? 0 : a % b;
        n += n != 0 && (n < 0) != (b < 0) ? b : 0;
        break;
    default: /* CW_JOP_POW with b >= 0 */
        n = int_power(r, a, b);
        break;
    }
    if (overflow) {
        fail_overflow(r);
    }
    return cw_jint(n);
}

static struct cw_jval float_binary(struct cw_jrender *r, enum cw_jop op, double a, double b) {
    double f;
    switch (op) {
    case CW_JOP_ADD:
        return cw_jfloat(a + b);
    case CW_JOP_SUB:
        return cw_jfloat(a - b);
    case CW_JOP_MUL:
        return cw_jfloat(a * b);
    case CW_JOP_DIV:
        return cw_jfloat(a / b);
    case CW_JOP_POW:
        f = pow(a, b);
        if (isnan(f) && !isnan(a) && !isnan(b)) {
            cw_jfailr(r, "complex numbers are not supported");
        }
        if (isinf(f) && isfinite(a) && isfinite(b)) {
            cw_jfailr(r, "OverflowError: the power is too large");
        }
        return cw_jfloat(f);
    default:
        break;
    }
    /* The remainder has the sign of the divisor, and (a - remainder) / b is whole. */
    double mod = fmod(a, b);
    if (mod != 0 && (b < 0) != (mod < 0)) {
        mod += b;
    } else if (mod == 0) {
        mod = copysign(0.0, b);
    }
    if (op == CW_JOP_MOD) {
        return cw_jfloat(mod);
    }
    double div = (a - fmod(a, b)) / b;
    if (fmod(a, b) != 0 && (b < 0) != (fmod(a, b) < 0)) {
        div -= 1.0;
    }
    if (div == 0) {
        return cw_jfloat(copysign(0.0, a / b));
    }
    f = floor(div);
    return cw_jfloat(div - f > 0.5 ? f + 1.0 : f);
}

static struct cw_jval number_binary(struct cw_jrender *r, enum cw_jop op, struct cw_jval a,
                                    struct cw_jval b) {
    bool ints = a.kind != CW_J_FLOAT && b.kind != CW_J_FLOAT;
    bool divides = op == CW_JOP_DIV || op == CW_JOP_FLOORDIV || op == CW_JOP_MOD;
    if (divides && cw_jas_double(b) == 0) {
        cw_jfailr(r, "ZeroDivisionError: division by zero");
    }
    if (op == CW_JOP_POW && cw_jas_double(a) == 0 && cw_jas_double(b) < 0) {
        cw_jfailr(r, "ZeroDivisionError: zero to a negative power");
    }
    if (ints && op != CW_JOP_DIV && !(op == CW_JOP_POW && cw_jwhole(b) < 0)) {
        return int_binary(r, op, cw_jwhole(a), cw_jwhole(b));
    }
    return float_binary(r, op, cw_jas_double(a), cw_jas_double(b));
}

/* The number of copies to make of `size` things; 0 for a negative count. */
static size_t copies(struct cw_jrender *r, int64_t count, size_t size) {
    if (count <= 0 || size == 0) {
        return 0;
    }
    if ((uint64_t)count > r->limits.value_bytes / size) {
        cw_jfailr(r, "a repetition of %lld times is too large", (long long)count);
    }
    return (size_t)count;
}

/* A short string is first repeated up to some kilobytes, and those are then. */
static struct cw_jval repeat_string(struct cw_jrender *r, const struct cw_jstr *s, size_t n) {
    struct cw_jbuild block = cw_jbuild_new(&r->arena), b = cw_jbuild_new(&r->arena);
    size_t in_block = s->len < 4096 && n > 0 ? 4096 / (s->len + 1) + 1 : 1;
    cw_jcharge_bytes(r, n * s->len);
    for (size_t i = 0; i < in_block && i < n; i++) {
        cw_jbuild_str(&block, s);
    }
    const struct cw_jstr *many = cw_jbuild_end(&block);
    cw_jbuild_reserve(&b, n * s->len);
    for (; n >= in_block; n -= in_block) {
        cw_jbuild_str(&b, many);
    }
    cw_jbuild_slice(&b, many, 0, n * s->len);
    struct cw_jstr *all = cw_jbuild_end(&b);
    all->markup = s->markup;
    return cw_jstring(all);
}

static struct cw_jval repeat(struct cw_jrender *r, struct cw_jval v, int64_t count) {
    if (v.kind == CW_J_STRING) {
        return repeat_string(r, v.s, copies(r, count, v.s->len));
    }
    size_t n = copies(r, count, v.list->n * sizeof *v.list->items);
    struct cw_jval out = cw_jseq(r, v.kind, n * v.list->n);
    cw_jcharge(r, out.list->n);
    for (size_t i = 0; i < out.list->n; i++) {
        out.list->items[i] = v.list->items[i % v.list->n];
    }
    return out;
}

/* Escaped text added to text that is not escapes that, on whichever side it stands. */
static struct cw_jval add_strings(struct cw_jrender *r, const struct cw_jstr *a,
                                  const struct cw_jstr *b) {
    bool markup = a->markup || b->markup;
    struct cw_jval both[] = {cw_jstring(a), cw_jstring(b)};
    if (!markup) {
        return cw_jconcat(r, both, 2);
    }
    both[0] = cw_jescape(r, a);
    both[1] = cw_jescape(r, b);
    struct cw_jstr *sum = cw_jalloc(&r->arena, sizeof *sum);
    *sum = *cw_jconcat(r, both, 2).s;
    sum->markup = true;
    return cw_jstring(sum);
}

static bool is_list(struct cw_jval v) {
    return v.kind == CW_J_LIST || v.kind == CW_J_TUPLE;
}

static struct cw_jval join_lists(struct cw_jrender *r, struct cw_jval a, struct cw_jval b) {
    size_t n = a.list->n + b.list->n;
    struct cw_jval out = cw_jseq(r, a.kind, n);
    cw_jcharge(r, n);
    if (a.list->n > 0) {
        memcpy(out.list->items, a.list->items, a.list->n * sizeof *a.list->items);
    }
    if (b.list->n > 0) {
        memcpy(out.list->items + a.list->n, b.list->items, b.list->n * sizeof *b.list->items);
    }
    return out;
}

struct cw_jval cw_jbinary(struct cw_jrender *r, enum cw_jop op, struct cw_jval a,
                          struct cw_jval b) {
    bool formats = op == CW_JOP_MOD && a.kind == CW_J_STRING;
    cw_jneed_defined(r, a);
    if (!formats) {
        cw_jneed_defined(r, b);
    }
    if (cw_jis_number(a) && cw_jis_number(b)) {
        return number_binary(r, op, a, b);
    }
    if (op == CW_JOP_ADD && a.kind == CW_J_STRING && b.kind == CW_J_STRING) {
        return add_strings(r, a.s, b.s);
    }
    if (op == CW_JOP_ADD && is_list(a) && a.kind == b.kind) {
        return join_lists(r, a, b);
    }
    if (op == CW_JOP_MUL) {
        bool a_repeats = a.kind == CW_J_STRING || is_list(a);
        bool b_repeats = b.kind == CW_J_STRING || is_list(b);
        if (a_repeats && (b.kind == CW_J_INT || b.kind == CW_J_BOOL)) {
            return repeat(r, a, cw_jwhole(b));
        }
        if (b_repeats && (a.kind == CW_J_INT || a.kind == CW_J_BOOL)) {
            return repeat(r, b, cw_jwhole(a));
        }
    }
    if (formats) {
        return cw_jpercent(r, a.s, b);
    }
    fail_operands(r, op, a, b);
}

bool cw_jcompare(struct cw_jrender *r, enum cw_jop op, struct cw_jval a, struct cw_jval b) {
    switch (op) {
    case CW_JOP_EQ:
        return cw_jequal(r, a, b);
    case CW_JOP_NE:
        return !cw_jequal(r, a, b);
    case CW_JOP_LT:
        return cw_jorder(r, "<", a, b) < 0;
    case CW_JOP_LE:
        return cw_jorder(r, "<=", a, b) <= 0;
    case CW_JOP_GT:
        return cw_jorder(r, ">", a, b) > 0;
    case CW_JOP_GE:
        return cw_jorder(r, ">=", a, b) >= 0;
    case CW_JOP_IN:
        return cw_jcontains(r, b, a);
    default:
        return !cw_jcontains(r, b, a);
    }
}

struct cw_jval cw_jnegate(struct cw_jrender *r, struct cw_jval v) {
    cw_jneed_defined(r, v);
    if (v.kind == CW_J_FLOAT) {
        return cw_jfloat(-v.f);
    }
    if (!cw_jis_number(v)) {
        cw_jfailr(r, "TypeError: bad operand type for unary -: '%s'", cw_jtype_name(v));
    }
    if (v.kind == CW_J_INT && v.i == INT64_MIN) {
        fail_overflow(r);
    }
    return cw_jint(-cw_jwhole(v));
}

struct cw_jval cw_jconcat(struct cw_jrender *r, const struct cw_jval *v, size_t n) {
    struct cw_jbuild b = cw_jbuild_new(&r->arena);
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += v[i].kind == CW_J_STRING ? v[i].s->len : 0;
    }
    cw_jbuild_reserve(&b, bytes);
    for (size_t i = 0; i < n; i++) {
        cw_jput_str(r, &b, v[i]);
    }
    return cw_jbuilt(&b);
}
