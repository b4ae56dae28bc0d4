#!/bin/bash
# Builds the fuzz targets (clang, address and undefined sanitizers) and runs each on its corpus.
#
#   scripts/fuzz.sh [--seconds N] [--only NAME,...] [--no-install]
#
# N seconds each (300). What is found is left in build/fuzz/found/NAME, and the exit status is 1.
set -euo pipefail
. "$(dirname "$0")/common.sh"

seconds=300 install=yes only=
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=${2:?--seconds N}; shift 2 ;;
    --only) only=,${2:?--only NAME}, ; shift 2 ;;
    --no-install) install=; shift ;;
    --help | -h) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) die "unknown option $1; see --help" ;;
  esac
done
[ -z "$install" ] || install_packages build test clang

build=$project/build/fuzz
say "configuring and building the fuzz targets"
(cd "$project" && cmake --preset fuzz >/dev/null) || die "cmake --preset fuzz failed"
cmake --build "$build" --parallel "$(nproc)" --target fuzzers >&2 || die "the build of preset fuzz failed"

# corpus NAME: its good and bad examples.
corpus() {
  case $1 in
    policy) echo tests/unit/policy/good tests/unit/policy/bad ;;
    recording) echo tests/unit/replay/good tests/unit/replay/bad tests/replay ;;
    *) [ ! -d "$project/tests/fuzz/corpus/$1" ] || echo "tests/fuzz/corpus/$1" ;;
  esac
}

failed=0
cd "$project"
for target in "$build"/tests/fuzz/fuzz_*; do
  [ -x "$target" ] && [ -f "$target" ] || continue
  name=${target##*/fuzz_}
  [ -z "$only" ] || [[ $only == *,$name,* ]] || continue
  mkdir -p "$build/new/$name" "$build/found/$name"
  options=(-max_total_time="$seconds" -artifact_prefix="$build/found/$name/" -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1)
  [ ! -f "tests/fuzz/$name.dict" ] || options+=(-dict="tests/fuzz/$name.dict")
  # shellcheck disable=SC2046
  if "$target" "${options[@]}" "$build/new/$name" $(corpus "$name") >"$build/$name.log" 2>&1; then
    printf '%-14s %s inputs, nothing found\n' "$name" "$(sed -n 's/stat::number_of_executed_units: *//p' "$build/$name.log")"
  else
    printf '%-14s FOUND something: %s\n' "$name" "$build/found/$name"
    tail -30 "$build/$name.log" >&2
    failed=1
  fi
done
exit "$failed"
