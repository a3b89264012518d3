#!/bin/sh
# SPDX-License-Identifier: MIT
#
# From a fresh Debian 12 to a chat, or to the result of the whole test suite, in one command:
#
#   sh assets/bootstrap.sh run [OPTION]...   packages, build, default model, chat
#   sh assets/bootstrap.sh test              packages, builds, default model, every test
#
# As root or with sudo; without either it only says which packages are missing. Needs no input, and
# ends with the exit status of what it ran. A second run installs, downloads and rebuilds nothing.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
default_model=smollm2-135m

# Tools count as present when their command is, libraries when dpkg knows them.
tools='gcc:gcc meson:meson ninja-build:ninja pkg-config:pkg-config python3:python3 binutils:nm'
libraries='libc6-dev libncurses-dev libreadline-dev libopenblas-dev libpcre2-dev libutf8proc-dev
    libsqlite3-dev libjson-c-dev libinih-dev libcmark-gfm-dev libcmark-gfm-extensions-dev check libvterm-dev
    ca-certificates'

say() {
    printf '%s\n' "-- $*"
}

fail() {
    printf 'bootstrap: %s\n' "$*" >&2
    exit 1
}

# ---- packages ---------------------------------------------------------------------------------

installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing_packages() {
    for tool in $tools; do
        command -v "${tool#*:}" >/dev/null 2>&1 || printf '%s ' "${tool%%:*}"
    done
    for library in $libraries; do
        installed "$library" || printf '%s ' "$library"
    done
    # Any pip will do, a virtual environment's too.
    python3 -m pip --version >/dev/null 2>&1 || printf 'python3-pip '
}

# Run as root, without ever waiting for a password.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        env DEBIAN_FRONTEND=noninteractive "$@"
    else
        sudo -n env DEBIAN_FRONTEND=noninteractive "$@"
    fi
}

can_install() {
    [ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; }
}

packages() {
    if ! command -v dpkg-query >/dev/null 2>&1; then
        say 'this is no Debian: the packages are taken to be there'
        return
    fi
    missing=$(missing_packages)
    [ -n "$missing" ] || return 0
    can_install || fail "these packages are missing, and there is neither root nor sudo: $missing"
    say "installing: $missing"
    as_root apt-get update -qq || fail 'apt-get update failed'
    # shellcheck disable=SC2086  # a list of words
    as_root apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 $missing ||
        fail 'apt-get install failed'
}

# ---- build ------------------------------------------------------------------------------------

# configure DIR OPTION...: set up a build folder once; meson keeps it up to date after that.
configure() {
    dir=$root/$1
    shift
    [ -f "$dir/build.ninja" ] || meson setup "$@" "$dir" "$root" || fail "meson setup failed in $dir"
}

build() {
    configure build --buildtype=release
    ninja -C "$root/build" -j"$(nproc)" app/chinwag || fail 'the build failed'
}

# ---- model ------------------------------------------------------------------------------------

# Where no home can hold the model it goes into the build folder.
choose_data_home() {
    case ${XDG_DATA_HOME:-} in /*) return ;; esac
    case ${HOME:-} in
    /*)
        place=$HOME/.local/share/chinwag/models
        if [ -n "$(ls "$place"/*.gguf 2>/dev/null)" ] || mkdir -p "$place" 2>/dev/null; then
            return
        fi
        ;;
    esac
    XDG_DATA_HOME=$root/build/data
    export XDG_DATA_HOME
    say "no usable home: models go into $XDG_DATA_HOME"
}

model() {
    choose_data_home
    sh "$root/assets/fetch.sh" "$default_model"
}

# ---- what was asked for -----------------------------------------------------------------------

mode=${1:-}
[ $# -eq 0 ] || shift
case $mode in
run)
    packages
    build
    # A model of one's own needs no download.
    case " $* " in
    *' -m '* | *' --model'* | *' --help '* | *' --version '*) choose_data_home ;;
    *) model || fail 'the default model could not be fetched; give a file with -m' ;;
    esac
    exec "$root/build/app/chinwag" "$@"
    ;;
test)
    packages
    # A build folder stays as it was set up, so the kinds have one each.
    configure build --buildtype=release
    configure build-asan --buildtype=debugoptimized -Db_sanitize=address,undefined
    configure build-tsan --buildtype=debugoptimized -Db_sanitize=thread
    model || say 'the default model could not be fetched: the tests that need it are skipped'
    exec sh "$root/tests/run.sh" "$root/build" "$root/build-asan" "$root/build-tsan"
    ;;
*)
    printf 'usage: sh assets/bootstrap.sh run [OPTION]... | test\n' >&2
    exit 2
    ;;
esac
