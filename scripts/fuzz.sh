#!/bin/bash
# Builds the fuzz targets (clang, address and undefined sanitizers) and runs each on its corpus.
#
#   scripts/fuzz.sh [--seconds N] [--seed N] [--only NAME,...] [--no-install]
#
# N seconds each (300), as many at a time as there are CPUs. What is found is left in build/fuzz/found/NAME, and the exit status is 1.
# With a seed, the same inputs in the same order each time, from the corpus alone: as far as the seconds reach.
set -euo pipefail
. "$(dirname "$0")/common.sh"

seconds=300 install=yes only= seed=
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=${2:?--seconds N}; shift 2 ;;
    --seed) seed=${2:?--seed N}; shift 2 ;;
    --only) only=,${2:?--only NAME}, ; shift 2 ;;
    --no-install) install=; shift ;;
    --help | -h) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) die "unknown option $1; see --help" ;;
  esac
done
[ -z "$install" ] || install_packages build test fuzz

build=$project/build/fuzz
say "configuring and building the fuzz targets"
(cd "$project" && cmake --preset fuzz >/dev/null) || die "cmake --preset fuzz failed"
cmake --build "$build" --parallel "$(nproc)" --target fuzzers >&2 || die "the build of preset fuzz failed"

# corpus NAME: its good and bad examples.
corpus() {
  case $1 in
    policy) echo tests/unit/policy/good tests/unit/policy/bad ;;
    scenario) echo bench/simulate ;;
    recording) echo tests/unit/replay/good tests/unit/replay/bad tests/replay ;;
    *) [ ! -d "$project/tests/fuzz/corpus/$1" ] || echo "tests/fuzz/corpus/$1" ;;
  esac
}

cd "$project"
# fuzz NAME: one target; 1: something was found.
fuzz() {
  local name=$1 found=$build/found/$1 options
  local new=$build/new/$name
  [ -z "$seed" ] || new=$(mktemp -d "$build/seeded-XXXXXX")
  mkdir -p "$new" "$found"
  options=(-max_total_time="$seconds" -artifact_prefix="$found/" -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1)
  [ -z "$seed" ] || options+=(-seed="$seed" -reload=0)
  [ ! -f "tests/fuzz/$name.dict" ] || options+=(-dict="tests/fuzz/$name.dict")
  # shellcheck disable=SC2046
  if "$build/tests/fuzz/fuzz_$name" "${options[@]}" "$new" $(corpus "$name") >"$build/$name.log" 2>&1; then
    [ -z "$seed" ] || rm -r "$new"
    printf '%-14s %s inputs, nothing found\n' "$name" "$(sed -n 's/stat::number_of_executed_units: *//p' "$build/$name.log")"
    return 0
  fi
  printf '%-14s FOUND something: %s\n' "$name" "$found"
  tail -30 "$build/$name.log" >&2
  return 1
}

names=()
for target in "$build"/tests/fuzz/fuzz_*; do
  [ -x "$target" ] && [ -f "$target" ] || continue
  name=${target##*/fuzz_}
  [ -z "$only" ] || [[ $only == *,$name,* ]] || continue
  names+=("$name")
done
[ ${#names[@]} -gt 0 ] || die "no target is called so"

# As many at a time as there are CPUs.
failed=0 running=0
for name in "${names[@]}"; do
  if [ "$running" -ge "$(nproc)" ]; then
    wait -n || failed=1
    running=$((running - 1))
  fi
  fuzz "$name" &
  running=$((running + 1))
done
for ((; running > 0; --running)); do wait -n || failed=1; done
exit "$failed"
