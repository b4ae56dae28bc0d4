#!/bin/bash
# Supervised programs that check each other, while swapd is killed, stopped and started again.
#
#   tests/integration/torture.sh [--seconds N] [--pairs N] [--observe seccomp|bpf|both] [--build DIR]
#
# Pairs of processes (tests/programs/torture.cpp) hand numbers to and fro over twelve mechanisms, in four programs, of which two are
# important, and two are in a class that delays what they read and write on disk and over TCP. Meanwhile swapd is killed every 0.2 to 2 s (now and then it is ended with SIGTERM, stopped for half a second, or takes its own place with `swapctl restart`), and
# started again; in between its guard is killed. Nothing may go wrong: no number, no call (ENOSYS, EINTR), no process that hangs, none that stands still for more than 1 s; in the end
# all have their own attributes, and of swapd and its guards nothing is left. What was counted is printed.
set -euo pipefail
project=$(cd "$(dirname "$0")/../.." && pwd)
. "$project/scripts/common.sh"
. "$project/tests/integration/common.sh"

seconds=300 pairs=100 observe=both build=$project/build/dev
read_options "seconds pairs observe build" "$@"
need_root
choose_observers
torture=$(test_program torture)

dir=$(mktemp -d /tmp/swapd-torture-XXXXXX)
swapd= front= failed=0
programs=() holders=()
cleanup() {
  local pid
  for pid in "${programs[@]}" "${holders[@]}"; do kill -9 "$pid" 2>/dev/null || true; done
  [ -z "$swapd" ] || kill -9 "$swapd" 2>/dev/null || true
  rm -rf "$dir"
}
trap cleanup EXIT

# The processes of programs: program I's own, and its children.
family() { echo "${programs[$1]}"; cat "/proc/${programs[$1]}/task/${programs[$1]}/children"; }
# has_own I CLASS NICE-OR-PRIORITY: everybody in it.
has_own() {
  local pid
  for pid in $(family "$1"); do
    [ "$(ps -o cls=,rtprio=,ni= -p "$pid" | tr -s ' ' | sed 's/^ //')" = "$2" ] || { ps -o pid=,cls=,rtprio=,ni= -p "$pid"; return 1; }
  done
}
# Some hundred calls a second are asked for. (Whoever is favoured goes ahead, and the others wait for what it owes: here nobody shall.)
printf '[class.slow.io]\nfavoured_wait = true\n[class.slow.io.disk]\noperations = 150\n[class.slow.io.network]\noperations = 150\n' >"$dir/policy.toml"
start_daemon() { start_swapd --config "$dir/policy.toml"; }
no_guard() { ! pgrep -f "^swapd-guard [0-9]* $dir/state"; }

options=("--class slow" "--nice -5 --class slow" "" "--fifo 10")
own=("TS - 0" "TS - -5" "TS - 0" "FF 10 -")

torment() {
  local i end action now delayed=0 kills=0 stops=0 ends=0 restarts=0 guards_killed=0
  start_daemon
  programs=() holders=()
  for i in 0 1 2 3; do
    rm -f "$dir/in$i"
    mkfifo "$dir/in$i"
    # shellcheck disable=SC2086
    "$build/src/cli/swapctl" --socket "$dir/s" run ${options[$i]} -- "$torture" $((pairs / 4)) <"$dir/in$i" >"$dir/out$i" &
    programs+=($!)
    sleep infinity >"$dir/in$i" &  # holds it open
    holders+=($!)
  done
  end=$(($(date +%s) + seconds / ${#observers[@]}))
  while [ "$(date +%s)" -lt "$end" ]; do
    sleep "$((RANDOM % 2)).$((RANDOM % 8 + 2))"
    now=$(ctl status --json | sed 's/.*"delayed_calls_total":\([0-9]*\).*/\1/')
    [ "$now" -le "$delayed" ] || delayed=$now
    action=$((RANDOM % 11))
    if [ $action -eq 0 ]; then
      stops=$((stops + 1))
      kill -STOP "$swapd"
      sleep 0.5
      kill -CONT "$swapd"
      continue
    elif [ $action -le 3 ]; then
      guards_killed=$((guards_killed + 1))
      pkill -9 -P "$swapd" -x swapd-guard || complain "swapd has no guard"
      until_true 2 pgrep -P "$swapd" -x swapd-guard || complain "nobody took the guard's place"
      sleep 0.1  # until it has all listeners: that both die at once is what nothing survives
      continue
    elif [ $action -eq 10 ]; then
      restarts=$((restarts + 1))
      ctl restart || complain "it does not restart"
      continue
    elif [ $action -eq 4 ]; then
      ends=$((ends + 1))
      kill -TERM "$swapd"
    else
      kills=$((kills + 1))
      kill -9 "$swapd"
    fi
    wait "$front" 2>/dev/null || true
    start_daemon
  done
  [ "$delayed" -gt 0 ] || complain "no call was delayed"
  kill -TERM "$swapd"
  wait "$front" || complain "swapd's exit status is $?"
  for i in 0 1 2 3; do
    has_own "$i" "${own[$i]}" >"$dir/foreign" || complain "a process of program $i has not its own attributes: $(cat "$dir/foreign")"
  done
  start_daemon
  kill "${holders[@]}"
  for i in 0 1 2 3; do
    wait "${programs[$i]}" || complain "program $i failed"
    printf '%s, program %s: %s\n' "$observer" "$((i + 1))" "$(cat "$dir/out$i")"
    grep -q '"slow":\[[0-9]*,[0-9]*,[0-9]*,0\]' "$dir/out$i" || complain "program $i stood still for more than 1 s"
  done
  programs=() holders=()
  until_true 10 empty || complain "not empty: $(ctl status --json)"
  kill -TERM "$swapd"
  wait "$front" || complain "swapd's exit status is $?"
  swapd=
  until_true 10 no_guard || complain "a guard is left"
  printf '%s: swapd was killed %s times, ended %s, restarted %s, stopped %s; its guard was killed %s times; %s calls at most were delayed under one\n' "$observer" "$kills" "$ends" "$restarts" "$stops" "$guards_killed" "$delayed"
}

for observer in "${observers[@]}"; do torment; done
[ "$failed" -eq 0 ] || exit 1
