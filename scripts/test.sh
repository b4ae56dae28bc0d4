#!/bin/bash
# Builds swapd and runs all its tests, on a fresh Debian 12, as root.
#
#   scripts/test.sh [--preset dev|clang|asan|tsan] [--no-install] [--only REGEX]
#
# The last line is "N passed, N failed, N skipped"; the exit status is 0 where nothing failed. A skipped test must stand in
# tests/skips.txt with what this machine lacks, else it counts as failed.
#
# The tests that are no unit tests meet a kernel that others use too. Up to five of them that fail are run once more, alone:
# one that passes then counts as passed and is listed.
set -euo pipefail
. "$(dirname "$0")/common.sh"

preset=dev install=yes only=
while [ $# -gt 0 ]; do
  case $1 in
    --preset) preset=${2:?--preset NAME}; shift 2 ;;
    --no-install) install=; shift ;;
    --only) only=${2:?--only REGEX}; shift 2 ;;
    --help | -h) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) die "unknown option $1; see --help" ;;
  esac
done
case $preset in
  dev | clang | asan | tsan) ;;
  *) die "unknown preset $preset: dev, clang, asan or tsan" ;;
esac
need_root

sections=(build test)
[ "$preset" != clang ] || sections+=(clang)
[ -z "$install" ] || install_packages "${sections[@]}"

# gcc 12's sanitizers cannot always place their shadow memory with the address space randomised as widely as new kernels do it.
fixed=()
case $preset in
  asan | tsan) ! setarch --addr-no-randomize true 2>/dev/null || fixed=(setarch --addr-no-randomize) ;;
esac
export ASAN_OPTIONS="detect_leaks=1:abort_on_error=0:${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
export TSAN_OPTIONS="suppressions=$project/tests/tsan.supp:print_suppressions=0:halt_on_error=0:exitcode=66:${TSAN_OPTIONS:-}"
export CTEST_OUTPUT_ON_FAILURE=1

# The build runs the test programs too, to list their tests.
if [ ${#fixed[@]} -gt 0 ]; then
  build_dir=$project/build/$preset
  say "configuring and building preset $preset"
  (cd "$project" && cmake --preset "$preset" >/dev/null) || die "cmake --preset $preset failed"
  "${fixed[@]}" cmake --build "$build_dir" --parallel "$(nproc)" >&2 || die "the build of preset $preset failed"
else
  build_preset "$preset"
fi

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT

# run_part NAME CTEST-OPTION…: one part of the tests, its results as JUnit.
run_part() {
  local part=$1
  shift
  say "$part tests"
  # ctest's own status does not matter: the results are counted below.
  ${fixed[@]+"${fixed[@]}"} ctest --test-dir "$build_dir" --no-tests=ignore --output-junit "$results/$part.xml" \
    ${only:+-R "$only"} "$@" || true
  [ -s "$results/$part.xml" ] || die "ctest gave no results for the $part tests"
}
# Unit tests share nothing; the others load CPUs and measure times, so they run one after the other.
run_part unit -L unit --parallel "$(nproc)"
run_part integration -LE unit

# statuses FILE…: one line a test: STATUS, NAME and REASON between tabs; the reason is the line after googletest's "Skipped".
statuses() {
  awk '
    function unescape(s) { gsub(/&lt;/, "<", s); gsub(/&gt;/, ">", s); gsub(/&quot;/, "\"", s); gsub(/&apos;/, "\047", s); gsub(/&amp;/, "\\&", s); return s }
    function flush() { if (name != "") printf "%s\t%s\t%s\n", status, name, reason; name = "" }
    /<testcase / {
      flush()
      name = $0; sub(/.* name="/, "", name); sub(/".*/, "", name); name = unescape(name)
      status = $0; sub(/.* status="/, "", status); sub(/".*/, "", status)
      reason = ""; next_is_reason = 0
    }
    /<skipped / { status = "skip" }
    next_is_reason && reason == "" { reason = unescape($0); next_is_reason = 0 }
    /: Skipped[[:space:]]*$/ { next_is_reason = 1 }
    END { flush() }
  ' "$@"
}

# again: the tests that failed and passed when they were run once more, a line each.
touch "$results/again"
rerun_failed() {
  local failed
  failed=$(grep -c '<testcase .*status="fail"' "$results/integration.xml" || true)
  { [ "$failed" -gt 0 ] && [ "$failed" -le 5 ]; } || return 0
  run_part rerun -LE unit --rerun-failed
  statuses "$results/rerun.xml" | awk -F '\t' '$1 == "run" { print $2 }' >"$results/again"
}

rerun_failed
statuses "$results/unit.xml" "$results/integration.xml" |
  awk -F '\t' -v OFS='\t' -v passed_again="$results/again" '
    BEGIN { while ((getline name <passed_again) > 0) again[name] }
    $1 == "fail" && ($2 in again) { $1 = "run" }
    { print }
  ' >"$results/all"

with_status() { awk -F '\t' -v wanted=" $1 " 'index(wanted, " " $1 " ")' "$results/all"; }
passed=$(with_status run | wc -l)
failed=$(with_status fail | wc -l)
skipped=$(with_status "skip notrun disabled" | wc -l)
[ $((passed + failed + skipped)) -gt 0 ] || die "no tests were run"

# listed NAME: what tests/skips.txt says this machine lacks; fails where it is not listed for this preset.
listed() {
  awk -F ' *[|] *' -v name="$1" -v preset="$preset" '
    /^#/ || NF < 3 { next }
    { presets = " " $2 " " }
    $1 == name && (presets == " any " || index(presets, " " preset " ")) { print $3; found = 1; exit }
    END { exit !found }
  ' "$project/tests/skips.txt"
}

if [ -s "$results/again" ]; then
  say "failed at first, passed when run once more:"
  sed 's/^/  /' "$results/again"
fi
if [ "$failed" -gt 0 ]; then
  say "failed:"
  with_status fail | awk -F '\t' '{ print "  " $2 }'
fi
if [ "$skipped" -gt 0 ]; then
  say "skipped:"
  unlisted=0
  while IFS=$'\t' read -r status name reason; do
    if lack=$(listed "$name"); then
      printf '  %s: %s\n' "$name" "$lack"
    else
      printf '  %s: NOT LISTED in tests/skips.txt: %s\n' "$name" "${reason:-$status}"
      unlisted=$((unlisted + 1))
    fi
  done < <(with_status "skip notrun disabled")
  skipped=$((skipped - unlisted)) failed=$((failed + unlisted))
fi
if [ -z "$only" ]; then
  # A line for a test that is no more is a line that nobody reads.
  while read -r name; do
    awk -F '\t' -v name="$name" '$2 == name { found = 1 } END { exit !found }' "$results/all" && continue
    printf '  %s: stands in tests/skips.txt, but there is no such test\n' "$name"
    failed=$((failed + 1))
  done < <(awk -F ' *[|] *' '!/^#/ && NF >= 3 { print $1 }' "$project/tests/skips.txt" | sort -u)
  while IFS=$'\t' read -r _ name _; do
    ! listed "$name" >/dev/null || printf '  %s: listed in tests/skips.txt, but it runs here\n' "$name"
  done < <(with_status run)
fi

printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
