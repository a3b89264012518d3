#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Nothing that reaches a logit or a draw calls libm for more than square root and fma, which are
# exact ("one arithmetic", rule 5). Fails when a library given needs another of libm's functions.
#
#   symbols.sh LIBRARY...
set -eu

# What libm exports, as the C library's own symbol table says; a fixed list where it cannot be read.
libm=$(ldconfig -p 2>/dev/null | sed -n 's/.*libm\.so\.6 .*=> //p' | head -n 1)
functions=$(nm -D --defined-only "${libm:-/nonexistent}" 2>/dev/null |
    sed -n 's/.* [TWi] \([a-z_][a-z0-9_]*\)@.*/\1/p' | sort -u)
if [ -z "$functions" ]; then
    functions=$(for f in exp exp2 exp10 expm1 log log2 log10 log1p pow sin cos tan sincos asin acos \
        atan atan2 sinh cosh tanh erf erfc cbrt hypot lgamma tgamma rint nearbyint round floor ceil \
        trunc fmod remainder fmin fmax ldexp scalbn frexp modf; do
        printf '%s\n%sf\n' "$f" "$f"
    done | sort -u)
fi

bad=0
for library in "$@"; do
    [ -e "$library" ] || { echo "$library: no such library"; exit 1; }
    # Thin archives name their members; nm reads both kinds.
    needed=$(nm -u "$library" 2>/dev/null | sed -n 's/^ *U \([a-zA-Z_0-9]*\).*/\1/p' | sort -u)
    [ -n "$needed" ] || { echo "$library: no symbols read"; exit 1; }
    for f in $needed; do
        case $f in
        sqrt | sqrtf | fma | fmaf) continue ;;
        esac
        if echo "$functions" | grep -qx "$f"; then
            echo "$library: uses libm's $f"
            bad=1
        fi
    done
done
exit $bad
