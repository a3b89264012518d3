#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Build and run the test suites of set-up build folders:
#
#   sh tests/run.sh BUILD [BUILD-ASAN [BUILD-TSAN]]
#
# The first runs every suite; the second (AddressSanitizer and UndefinedBehaviorSanitizer) those of
# the core and of the program's options; the third (ThreadSanitizer) those where threads meet. Ends
# with the closing line of every suite as Check prints it, and one of the same form for all together.
set -eu

if [ $# -lt 1 ] || [ $# -gt 3 ]; then
    printf 'usage: sh tests/run.sh BUILD [BUILD-ASAN [BUILD-TSAN]]\n' >&2
    exit 2
fi

sanitized_dirs='base gguf tokenizer template compute model chat store'
# One compares bits of kernels, which are built without sanitizers in any case, and is slow; the
# other drives the whole program.
unsanitized='exact store-commands'
threaded_names='ring generator threadpool store'
option_names='app-options app-config'
summary=$(mktemp)
trap 'rm -f "$summary"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
failed=0

# select names|targets BUILD SELECTION...: the names of the tests in a build folder, or the files ninja
# has to build for them: of all tests, or of those below tests/ in dir:NAME, or with name:WORD in
# their names.
select_tests() {
    what=$1 folder=$2
    shift 2
    meson introspect --targets --tests "$folder" | python3 -c '
import json, os, sys

what, build, *wanted = sys.argv[1:]
build = os.path.realpath(build)
data = json.load(sys.stdin)
files = {t["id"]: t["filename"] for t in data["targets"]}
places = {os.path.realpath(f): os.path.basename(os.path.dirname(t["defined_in"]))
          for t in data["targets"] for f in t["filename"]}
for test in data["tests"]:
    program = os.path.realpath(test["cmd"][0])
    place = places.get(program, os.path.basename(os.path.dirname(program)))
    if "not:" + test["name"] in wanted:
        continue
    if wanted and f"dir:{place}" not in wanted and not any(
            w[:5] == "name:" and w[5:] in test["name"] for w in wanted):
        continue
    if what == "names":
        print(test["name"])
        continue
    built = [program] if program in places else []
    for target in test["depends"]:
        built += files.get(target, [])
    for path in built:
        print(os.path.relpath(os.path.realpath(path), build))
' "$what" "$folder" "$@"
}

# suites TITLE BUILD SELECTION TIMEOUT-FACTOR WRAPPER
suites() {
    title=$1 build=$2 selection=$3 factor=$4 wrapper=$5
    printf '\n== %s\n' "$title"
    printf '\n== %s\n' "$title" >>"$summary"
    ninja -C "$build" build.ninja >/dev/null || true # what is introspected must be up to date
    # shellcheck disable=SC2086  # lists of words, here and below
    names=$(select_tests names "$build" $selection)
    if [ -z "$names" ]; then
        printf 'no suites\n' >>"$summary"
        return
    fi
    # shellcheck disable=SC2086
    if ! ninja -C "$build" -j"$(nproc)" ${selection:+$(select_tests targets "$build" $selection)}; then
        printf 'the build failed\n' >>"$summary"
        failed=1
        return
    fi
    # shellcheck disable=SC2086
    CK_TIMEOUT_MULTIPLIER=$factor meson test -C "$build" --no-rebuild --print-errorlogs \
        --timeout-multiplier "$factor" ${wrapper:+--wrapper "$wrapper"} $names || failed=1
    python3 - "$build/meson-logs" "$wrapper" >>"$summary" <<'PYTHON'
import json, os, re, sys

logs, wrapper = sys.argv[1:]
path = os.path.join(logs, "testlog.json")
if wrapper:
    path = os.path.join(logs, "testlog-" + wrapper.split()[0] + ".json")
with open(path, encoding="utf-8") as log:
    tests = [json.loads(line) for line in log]
for test in sorted(tests, key=lambda t: t["name"]):
    name = test["name"].split(" / ")[-1]
    output = test.get("stdout") or ""
    lines = re.findall(r"^\d+%: Checks: \d+, Failures: \d+, Errors: \d+$", output, re.M)
    skipped = re.findall(r"^skipped: .*$", output, re.M)
    print(f"{name} ({test['result'].lower()}, {test['duration']:.1f} s)")
    skipped = sorted(set(skipped))
    for line in lines + skipped[:3]:
        print(line)
    if len(skipped) > 3:
        print(f"skipped: {len(skipped) - 3} more, all told in testlog.txt")
    if not lines and test["result"] not in ("OK", "SKIP"):
        print("no closing line")
PYTHON
}

suites 'ordinary build' "$1" '' 1 ''
if [ $# -ge 2 ]; then
    selection=$(for d in $sanitized_dirs; do printf 'dir:%s ' "$d"; done
        for n in $unsanitized; do printf 'not:%s ' "$n"; done
        for n in $option_names; do printf 'name:%s ' "$n"; done)
    # A test that must die of SIGSEGV dies of it, and Check tells of any other.
    export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_stack_use_after_return=1:handle_segv=0}"
    export UBSAN_OPTIONS="${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}"
    suites 'AddressSanitizer and UndefinedBehaviorSanitizer' "$2" "$selection" 5 ''
fi
if [ $# -ge 3 ]; then
    # Address randomisation as newer kernels do it is more than ThreadSanitizer can take.
    no_random=
    if setarch "$(uname -m)" -R true 2>/dev/null; then
        no_random="setarch $(uname -m) -R"
    fi
    selection=$(for n in $threaded_names; do printf 'name:%s ' "$n"; done
        for n in $unsanitized; do printf 'not:%s ' "$n"; done)
    suites 'ThreadSanitizer' "$3" "$selection" 8 "$no_random"
fi

cat "$summary"
python3 - "$summary" <<'PYTHON'
import re, sys

with open(sys.argv[1], encoding="utf-8") as log:
    text = log.read()
checks = failures = errors = 0
for c, f, e in re.findall(r"^\d+%: Checks: (\d+), Failures: (\d+), Errors: (\d+)$", text, re.M):
    checks, failures, errors = checks + int(c), failures + int(f), errors + int(e)
# A suite that died without a closing line, or could not be built, is an error of its own.
errors += len(re.findall(r"^(?:no closing line|the build failed|no suites)$", text, re.M))
passed = checks - failures - errors
print("\n== all together")
print(f"{max(0, 100 * passed // checks) if checks else 0}%: Checks: {checks}, Failures: {failures}, "
      f"Errors: {errors}")
sys.exit(1 if failures or errors or not checks else 0)
PYTHON
exit "$failed"
