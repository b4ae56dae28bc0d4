#!/bin/bash
# `swapctl top` in a terminal, with real programs that wait for each other: keys are typed, and the screen is looked at.
#
#   tests/integration/cli/top.sh [--build DIR] [--show]
#
# --show prints the screen with the tree. Needs root and tmux. Exit status 77: tmux is missing.
set -euo pipefail
project=$(cd "$(dirname "$0")/../../.." && pwd)
. "$project/scripts/common.sh"
. "$project/tests/integration/common.sh"

build=$project/build/dev observer=seccomp failed=0 show=
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=${2:?--build DIR}; shift 2 ;;
    --show) show=yes; shift ;;
    --help | -h) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) die "unknown option $1; see --help" ;;
  esac
done
need_root
command -v tmux >/dev/null || { printf 'cli_top: Skipped\ntmux is missing\n'; exit 77; }

dir=$(mktemp -d /tmp/swapd-top-XXXXXX)
front= children=()
terminal() { tmux -L "swapd-$$" "$@"; }
cleanup() {
  terminal kill-server 2>/dev/null || true
  [ ${#children[@]} = 0 ] || kill "${children[@]}" 2>/dev/null || true
  [ -z "$front" ] || { kill "$front" 2>/dev/null && wait "$front"; } 2>/dev/null || true
  rm -rf "$dir"
}
trap cleanup EXIT

# A client at nice -10 waits for a server that computes until a file appears; a sleeper waits for nobody.
printf '[class.desktop]\n[class.batch]\n' >"$dir/policy.toml"
pair=$(test_program pair)
start_swapd --config "$dir/policy.toml"
run() { "$build/src/cli/swapctl" --socket "$dir/s" run "$@" & children+=($!); }
run --class batch -- "$pair" server "$dir/sock" "$dir/flag"
server=$!
until_true 10 test -S "$dir/sock"
run --class desktop --nice -10 -- "$pair" client "$dir/sock"
client=$!
run -- sleep 300
sleeper=$!
waits() { ctl ps | grep -E "^$client " | grep -q virtual-runnable; }
until_true 10 waits || die "the client does not wait"
lent() { ctl ps | grep -E "^$server " | grep -q "$client"; }
until_true 10 lent || die "nothing is lent to the server"

screen() { terminal capture-pane -p; }
press() { terminal send-keys "$@"; }
now() { screen | grep -qE -- "$1"; }
gone() { ! now "$1"; }
must() {
  if until_true 10 "${@:2}"; then echo "ok: $1"; else { echo "not so: $1"; screen; } >&2; failed=1; fi
}
# The lines that match come in this order.
in_order() {
  local at=0 line regex
  for regex in "$@"; do
    line=$(screen | grep -nE -- "$regex" | head -1 | cut -d: -f1)
    [ -n "$line" ] && [ "$line" -gt "$at" ] || return 1
    at=$line
  done
}

env NO_COLOR= tmux -L "swapd-$$" -f /dev/null new-session -d -x 150 -y 24 \
  "env LC_ALL=C.UTF-8 SWAPD_SOCKET=$dir/s $build/src/cli/swapctl top --delay 0.2; echo ended with \$?; exec sleep 300"
must "it shows who waits, and who is lent to" in_order "^ *$client +$client pair +desktop +virtual-runnable" \
  "^ *$server +$server pair +batch +(running|queued) .* nice -10 +$client" "^ *$sleeper "
must "and how swapd does" now "^swapd [0-9.]+, observer seccomp: 3 threads of 3 processes"
press t
must "t makes a tree of it" now "^ *$server +$server └─ pair"
[ -z "$show" ] || screen
press t
must "and takes it away" gone "└─"
press N
must "N sorts by process id" in_order "PIDv" "^ *$server " "^ *$client " "^ *$sleeper "
press I
must "I turns it round" in_order "PID\^" "^ *$sleeper " "^ *$client " "^ *$server "
press T
press '\' ; press -l 'slee'; press Enter
must "a filter leaves what fits" gone "desktop"
press '\' ; press Escape
must "and Escape takes it away" now "desktop"
press -l /; press -l sleep; press Enter
press w
must "w tells why the selected one waits" now "sleep, pid $sleeper"
press x
must "and any key goes back" now "COMMAND"
press ]
nice_is() { [ "$(ps -o ni= -p "$1" | tr -d ' ')" = "$2" ]; }
must "] makes the selected one less nice" nice_is "$sleeper" -1
press F8
must "F8 takes that back" nice_is "$sleeper" 0
press h
must "h tells of the keys" now "a row a process, or a thread"
press x
terminal resize-window -x 60 -y 12 2>/dev/null || true
must "a small window has what fits" now "^ *$client +$client pair"
widest() { [ "$(screen | awk '{ if (length($0) > n) n = length($0) } END { print n }')" -le 60 ]; }
must "and no more" widest
terminal resize-window -x 150 -y 24 2>/dev/null || true
touch "$dir/flag"
must "an answer ends the wait" gone virtual-runnable
press q
must "q ends it, and the terminal is as it was" now "ended with 0"

text=$(ctl top --tree | cat)
grep -q '^swapd ' <<<"$text" && grep -qE "^ *$sleeper +$sleeper sleep" <<<"$text" || { echo "not so: in a pipe it is text" >&2; failed=1; }
[ "$(ctl top --json --count 2 --delay 0.1 | wc -l)" = 2 ] || { echo "not so: --json has a line a look" >&2; failed=1; }
exit "$failed"
