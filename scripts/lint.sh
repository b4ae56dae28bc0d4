#!/bin/bash
# Checks the prose of comments and pages (scripts/prose.py), then the form of the C++ files: clang-format, clang-tidy.
#
#   scripts/lint.sh [--all] [--fix] [--format-only] [BUILD_DIR]
#
# Without --all only files that differ from the branch's upstream (or from HEAD) are given to clang-tidy; all are checked for format.
set -euo pipefail
. "$(dirname "$0")/common.sh"

all= fix= tidy=yes build_dir=$project/build/clang
while [ $# -gt 0 ]; do
  case $1 in
    --all) all=yes ;;
    --fix) fix=yes ;;
    --format-only) tidy= ;;
    --help | -h) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    -*) die "unknown option $1; see --help" ;;
    *) build_dir=$1 ;;
  esac
  shift
done
cd "$project"
command -v clang-format >/dev/null || die "clang-format is missing: apt-get install $(packages_of clang | tr '\n' ' ')"

mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.cpp' '*.h' '*.c')
status=0
say "prose: counts of scripts/prose-baseline.txt"
scripts/prose.py || status=1
if [ -n "$fix" ]; then
  clang-format -i "${files[@]}"
else
  say "clang-format: ${#files[@]} files"
  clang-format --dry-run --Werror "${files[@]}" || status=1
fi
[ -n "$tidy" ] || exit "$status"

[ -f "$build_dir/compile_commands.json" ] || die "no $build_dir/compile_commands.json: build the clang preset first (the others compile several files as one), or name a build directory"
if [ -z "$all" ]; then
  since=$(git merge-base HEAD '@{upstream}' 2>/dev/null || git rev-parse HEAD)
  mapfile -t files < <(git diff --name-only --diff-filter=d "$since" -- '*.cpp'
    git ls-files --others --exclude-standard -- '*.cpp')
fi
mapfile -t sources < <(printf '%s\n' ${files[@]+"${files[@]}"} | grep '\.cpp$' | sort -u |
  while read -r file; do ! grep -qF "/$file\"" "$build_dir/compile_commands.json" || printf '%s\n' "$file"; done)
say "clang-tidy: ${#sources[@]} files"
[ ${#sources[@]} -eq 0 ] || printf '%s\n' "${sources[@]}" |
  xargs -P "$(nproc)" -n 4 clang-tidy -p "$build_dir" --quiet --extra-arg=-Wno-unknown-warning-option ${fix:+--fix} || status=1
exit "$status"
