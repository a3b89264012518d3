/* SPDX-License-Identifier: MIT
 * What can stand behind `is` (builtins.h). */
#include "builtins.h"
#include "unicode.h"

static struct cw_jval remainder_is(struct cw_jrender *r, struct cw_jval v, struct cw_jval by,
                                   int64_t wanted) {
    return cw_jbool(cw_jequal(r, cw_jbinary(r, CW_JOP_MOD, v, by), cw_jint(wanted)));
}

CW_JBUILTIN(test_odd) {
    return remainder_is(r, v, cw_jint(2), 1);
}

CW_JBUILTIN(test_even) {
    return remainder_is(r, v, cw_jint(2), 0);
}

CW_JBUILTIN(test_divisibleby) {
    return remainder_is(r, v, arg[0], 0);
}

CW_JBUILTIN(test_defined) {
    return cw_jbool(v.kind != CW_J_UNDEFINED);
}

CW_JBUILTIN(test_undefined) {
    return cw_jbool(v.kind == CW_J_UNDEFINED);
}

CW_JBUILTIN(test_none) {
    return cw_jbool(v.kind == CW_J_NONE);
}

CW_JBUILTIN(test_boolean) {
    return cw_jbool(v.kind == CW_J_BOOL);
}

CW_JBUILTIN(test_true) {
    return cw_jbool(v.kind == CW_J_BOOL && v.b);
}

CW_JBUILTIN(test_false) {
    return cw_jbool(v.kind == CW_J_BOOL && !v.b);
}

CW_JBUILTIN(test_integer) {
    return cw_jbool(v.kind == CW_J_INT);
}

CW_JBUILTIN(test_float) {
    return cw_jbool(v.kind == CW_J_FLOAT);
}

CW_JBUILTIN(test_number) {
    return cw_jbool(cw_jis_number(v));
}

CW_JBUILTIN(test_string) {
    return cw_jbool(v.kind == CW_J_STRING);
}

CW_JBUILTIN(test_mapping) {
    return cw_jbool(v.kind == CW_J_DICT);
}

CW_JBUILTIN(test_sequence) {
    return cw_jbool(v.kind == CW_J_UNDEFINED || v.kind == CW_J_STRING || v.kind == CW_J_LIST ||
                    v.kind == CW_J_TUPLE || v.kind == CW_J_DICT || v.kind == CW_J_RANGE);
}

CW_JBUILTIN(test_iterable) {
    return cw_jbool(cw_jiterable(v));
}

CW_JBUILTIN(test_callable) {
    return cw_jbool(cw_jcallable(v));
}

CW_JBUILTIN(test_escaped) {
    return cw_jbool(v.kind == CW_J_STRING && v.s->markup);
}

CW_JBUILTIN(test_filter) {
    cw_jneed_hashable(r, v);
    return cw_jbool(v.kind == CW_J_STRING && cw_jfilter_find(v.s) != NULL);
}

CW_JBUILTIN(test_test) {
    cw_jneed_hashable(r, v);
    return cw_jbool(v.kind == CW_J_STRING && cw_jtest_find(v.s) != NULL);
}

CW_JBUILTIN(test_in) {
    return cw_jbool(cw_jcontains(r, arg[0], v));
}

CW_JBUILTIN(test_eq) {
    return cw_jbool(cw_jcompare(r, CW_JOP_EQ, v, arg[0]));
}

CW_JBUILTIN(test_ne) {
    return cw_jbool(cw_jcompare(r, CW_JOP_NE, v, arg[0]));
}

CW_JBUILTIN(test_gt) {
    return cw_jbool(cw_jcompare(r, CW_JOP_GT, v, arg[0]));
}

CW_JBUILTIN(test_ge) {
    return cw_jbool(cw_jcompare(r, CW_JOP_GE, v, arg[0]));
}

CW_JBUILTIN(test_lt) {
    return cw_jbool(cw_jcompare(r, CW_JOP_LT, v, arg[0]));
}

CW_JBUILTIN(test_le) {
    return cw_jbool(cw_jcompare(r, CW_JOP_LE, v, arg[0]));
}

/* Identity: sure for what is one object everywhere, and for containers. Whether two equal strings
 * or numbers are one object is a matter of chance in the reference. */
CW_JBUILTIN(test_sameas) {
    struct cw_jval w = arg[0];
    if (v.kind != w.kind) {
        return cw_jbool(false);
    }
    switch (v.kind) {
    case CW_J_NONE:
        return cw_jbool(true);
    case CW_J_BOOL:
        return cw_jbool(v.b == w.b);
    case CW_J_LIST:
    case CW_J_DICT:
    case CW_J_NAMESPACE:
        return cw_jbool(v.list == w.list);
    default:
        cw_jfailr(r, "'is sameas' of a '%s' object is not supported", cw_jtype_name(v));
    }
}

/* All letters with case have the wanted one, and there is one. */
static struct cw_jval has_case(struct cw_jrender *r, struct cw_jval v, bool upper) {
    const struct cw_jstr *s = cw_jstr_of(r, v);
    bool any = false;
    cw_jcharge_chars(r, s->len);
    for (size_t i = 0; i < s->len;) {
        uint32_t cp;
        i += cw_jstr_decode(s, i, &cp);
        bool wanted = upper ? cw_jchar_is_upper(cp) : cw_jchar_is_lower(cp);
        if (!wanted && cw_jchar_is_cased(cp)) {
            return cw_jbool(false);
        }
        any |= wanted;
    }
    return cw_jbool(any);
}

CW_JBUILTIN(test_lower) {
    return has_case(r, v, false);
}

CW_JBUILTIN(test_upper) {
    return has_case(r, v, true);
}

static const struct cw_jbuiltin tests[] = {
    {"odd", "", test_odd},
    {"even", "", test_even},
    {"divisibleby", "num", test_divisibleby},
    {"defined", "", test_defined},
    {"undefined", "", test_undefined},
    {"none", "", test_none},
    {"boolean", "", test_boolean},
    {"true", "", test_true},
    {"false", "", test_false},
    {"integer", "", test_integer},
    {"float", "", test_float},
    {"number", "", test_number},
    {"string", "", test_string},
    {"mapping", "", test_mapping},
    {"sequence", "", test_sequence},
    {"iterable", "", test_iterable},
    {"callable", "", test_callable},
    {"escaped", "", test_escaped},
    {"filter", "", test_filter},
    {"test", "", test_test},
    {"in", "seq", test_in},
    {"sameas", "other", test_sameas},
    {"lower", "", test_lower},
    {"upper", "", test_upper},
    {"==", "b", test_eq},
    {"eq", "b", test_eq},
    {"equalto", "b", test_eq},
    {"!=", "b", test_ne},
    {"ne", "b", test_ne},
    {">", "b", test_gt},
    {"gt", "b", test_gt},
    {"greaterthan", "b", test_gt},
    {">=", "b", test_ge},
    {"ge", "b", test_ge},
    {"<", "b", test_lt},
    {"lt", "b", test_lt},
    {"lessthan", "b", test_lt},
    {"<=", "b", test_le},
    {"le", "b", test_le},
    {NULL, NULL, NULL},
};

const struct cw_jbuiltin *cw_jtest_find(const struct cw_jstr *name) {
    return cw_jtable_find(tests, name);
}
