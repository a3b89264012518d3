#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The store's long tests, of which the suite runs a few minutes' worth less:
#
#   sh tests/store/campaign.sh BUILD [KILLS [PLACES]]
#
# kills the program 200 times while it saves, and damages a store at 1,000 places, each time looking
# at what comes back. TMPDIR on a file system in memory makes it minutes instead of tens of them.
set -eu

build=${1:?usage: sh tests/store/campaign.sh BUILD [KILLS [PLACES]]}
kills=${2:-200}
places=${3:-1000}

ninja -C "$build" tests/store/test_faults tests/store/test_damage
# A third of the places are flips of the database, with its log or without; a sixth each are flips of
# its header, flips of the log and cuts.
ninja -C "$build" app/chinwag tests/ui/test_tui_keep
status=0
CK_RUN_CASE=faults CHINWAG_KILLS=$kills "$build/tests/store/test_faults" || status=1
# The program on a terminal, killed in the midst of replies: a tenth as often, for each takes seconds.
CK_RUN_CASE=killed CHINWAG_KILLS=$((kills / 10 > 0 ? kills / 10 : 1)) CHINWAG_BUILD_ROOT=$build \
    "$build/tests/ui/test_tui_keep" || status=1
CHINWAG_PLACES=$places "$build/tests/store/test_damage" || status=1
exit "$status"
