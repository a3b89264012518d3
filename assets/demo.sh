#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Hold a real chat in a terminal of tmux and put its screens into README.md, as text, between the
# lines <!-- demo:begin --> and <!-- demo:end -->. So the picture there is what the program shows.
#
#   sh assets/demo.sh            write README.md
#   sh assets/demo.sh --print    only print what would be written
#
# With the default model (assets/fetch.sh smollm2-135m), a fixed seed and fixed settings every
# machine gives the same words; speed, memory and the name of the kernels are its own. The program
# is build/app/chinwag, or what CHINWAG names.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
readme=$root/README.md
program=${CHINWAG:-$root/build/app/chinwag}
file=SmolLM2-135M-Instruct.Q4_1.gguf
model=${XDG_DATA_HOME:-$HOME/.local/share}/chinwag/models/$file
cols=80
rows=24
deadline=600 # tenths of a second that a step may take

fail() {
    printf 'demo: %s\n' "$*" >&2
    exit 1
}

command -v tmux >/dev/null 2>&1 || fail 'tmux is missing: apt-get install tmux'
[ -x "$program" ] || fail "$program is missing: build it, or set CHINWAG"
[ -r "$model" ] || fail "$model is missing: sh assets/fetch.sh smollm2-135m"
case ${1:-} in '' | --print) ;; *) fail "unknown option: $1" ;; esac

work=$(mktemp -d)
socket=$work/tmux
mkdir "$work/home"

on_terminal() {
    tmux -S "$socket" -f /dev/null "$@"
}

clean_up() {
    on_terminal kill-server 2>/dev/null || :
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# ---- the terminal ------------------------------------------------------------------------------

screen() {
    on_terminal capture-pane -p -t demo
}

# Wait until the screen has a line that matches.
wait_for() {
    tenths=0
    until screen | grep -q -- "$1"; do
        tenths=$((tenths + 1))
        [ "$tenths" -lt "$deadline" ] || fail "no line on the screen matches: $1"
        sleep 0.1
    done
}

# The screen once it stands still.
settled() {
    before=
    now=$(screen)
    while [ "$now" != "$before" ]; do
        sleep 0.6
        before=$now
        now=$(screen)
    done
    printf '%s\n' "$now"
}

type_line() {
    on_terminal send-keys -t demo -l -- "$1"
    on_terminal send-keys -t demo Enter
}

# Ask, and wait for the end of the reply.
ask() {
    type_line "$1"
    wait_for "^   $1"
    wait_for '^ idle'
}

# As a block of code: in Markdown what is indented by four is left alone.
block() {
    sed 's/ *$//; s/^/    /; s/^ *$//'
}

# ---- the chat ----------------------------------------------------------------------------------

play() {
    on_terminal new-session -d -s demo -x "$cols" -y "$rows" \
        "env HOME='$work/home' XDG_STATE_HOME='$work/home' XDG_CONFIG_HOME='$work/home' \
        XDG_DATA_HOME='$work/home' LC_ALL=C.UTF-8 '$program' -m '$model' --private --seed 1 \
        --temp 0 -c 8192 2>'$work/said'"
    wait_for '^ idle'
    ask 'Write a short Python function that reverses a string.'
    settled | block >"$work/chat"
    type_line '/preset chat'
    wait_for 'T 0.80'
    ask 'How do I call it?'
    on_terminal send-keys -t demo F4
    wait_for 'token 1 of 29'
    on_terminal send-keys -t demo -N 16 Right
    wait_for 'token 17 of 29' # an unlikely one
    settled | block >"$work/lens"
    type_line '/exit'
}

play
{
    printf '%s\n\n' 'A chat at temperature 0:'
    cat "$work/chat"
    printf '\n%s\n\n' 'The lens (F4): how likely each token was, and what else could have stood there:'
    cat "$work/lens"
} >"$work/demo"

if [ "${1:-}" = --print ]; then
    cat "$work/demo"
    exit 0
fi
for marker in begin end; do
    grep -q "^<!-- demo:$marker -->\$" "$readme" || fail "README.md lacks the line <!-- demo:$marker -->"
done
awk -v demo="$work/demo" '
    /^<!-- demo:end -->$/ { inside = 0 }
    !inside { print }
    /^<!-- demo:begin -->$/ {
        inside = 1
        print ""
        while ((getline line < demo) > 0) {
            print line
        }
        print ""
    }' "$readme" >"$work/README.md"
cat "$work/README.md" >"$readme"
