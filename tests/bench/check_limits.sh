#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Hold what `chinwag bench` takes for the machine's limits against limits.c, which has none of its
# code:
#
#     check_limits.sh CHINWAG MODEL.gguf [ISA]
#
# Prints both and their ratios; ends with 1 when a figure of bench is below 95 % of the other. Each is
# the best of three runs, in turn, because anything else that runs makes both smaller.
set -eu
[ $# -ge 2 ] || { echo "usage: check_limits.sh CHINWAG MODEL.gguf [ISA]" >&2; exit 2; }
chinwag=$1 model=$2 isa=${3:-auto}
case $isa in
scalar) echo "check_limits: limits.c has no scalar step" >&2; exit 2 ;;
avx2) flags='-mavx2 -mno-avxvnni -mno-avx512f' ;;
avxvnni) flags='-mavx2 -mavxvnni -mno-avx512f' ;;
*) flags=-march=native ;;
esac
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# shellcheck disable=SC2086
${CC:-gcc} -O3 $flags -fopenmp "$(dirname "$0")/limits.c" -o "$dir/limits"

field() { # FILE KEY
    sed -n "s/.*\"$2\": *\([0-9.]*\).*/\1/p" "$1" | head -n 1
}

for run in 1 2 3; do
    "$chinwag" bench --limits --json --isa "$isa" -m "$model" > "$dir/own"
    bytes=$(field "$dir/own" read_bytes)
    "$dir/limits" "$(printf '%.0f' "$bytes")" "$(field "$dir/own" threads)" > "$dir/other"
    for key in read_gbs int8_gops; do
        echo "$key $(field "$dir/own" "$key") $(field "$dir/other" "$key")"
    done
done > "$dir/all"
awk '{ if ($2 > own[$1]) own[$1] = $2; if ($3 > other[$1]) other[$1] = $3 }
END {
    for (key in own) {
        ratio = own[key] / other[key]
        printf "%-10s bench %8.1f   limits.c %8.1f   ratio %.2f\n", key, own[key], other[key], ratio
        bad = bad || ratio < 0.95
    }
    exit bad
}' "$dir/all"
