#!/bin/bash
# Processes that are busy in every blocking call are enrolled and released, again and again, and check what their calls give.
#
#   tests/integration/attach.sh [--times N] [--observe seccomp|bpf|both] [--build DIR]
#
# Each time: the program `busy` (tests/programs/busy.cpp) is started, some 80 processes; they are enrolled with `swapctl enroll --tree`
# (with seccomp, all their threads are stopped, and the filter is installed in the middle of whatever call they are in), and released
# a moment later. No call may give anything else than without swapd, and none may hang. What was counted is printed.
set -euo pipefail
project=$(cd "$(dirname "$0")/../.." && pwd)
. "$project/scripts/common.sh"
. "$project/tests/integration/common.sh"

times=500 observe=both build=$project/build/dev
read_options "times observe build" "$@"
need_root
choose_observers
busy=$(test_program busy)

dir=$(mktemp -d /tmp/swapd-attach-XXXXXX)
front= program= failed=0
cleanup() {
  exec 9>&-
  [ -z "$program" ] || kill -9 "$program" 2>/dev/null || true
  [ -z "$front" ] || kill "$front" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$dir"
}
trap cleanup EXIT

# Ahead of what they are about: some twenty threads of it are always runnable.
ctl() { nice -n -15 "$build/src/cli/swapctl" --socket "$dir/s" "$@"; }
runs_all() { [ "$(cat "/proc/$program/task/$program/children" 2>/dev/null | wc -w)" -ge 70 ]; }

enroll_and_release() {
  local pids
  mkfifo "$dir/in"
  "$busy" <"$dir/in" >"$dir/out" 2>&1 &
  program=$!
  exec 9>"$dir/in"
  until_true 10 runs_all || complain "busy does not start"
  ctl enroll --tree "$program" || complain "enroll: $?"
  sleep "0.0$((RANDOM % 9))"
  pids=$(ctl ps --json | grep -o '"pid":[0-9]*' | sort -u | cut -d: -f2)
  managed=$((managed + $(wc -w <<<"$pids")))
  # Children of wait4's and waitid's processes may end meanwhile.
  for pid in $pids; do ctl release "$pid" 2>/dev/null || true; done
  sleep "0.0$((RANDOM % 5))"
  exec 9>&-
  if wait "$program"; then good=$((good + 1)); else complain "wrong: $(cat "$dir/out")"; fi
  rounds=$((rounds + $(sed -n 's/.*"rounds":\([0-9]*\).*/\1/p' "$dir/out")))
  program=
  rm "$dir/in"
}

for observer in "${observers[@]}"; do
  start_swapd
  good=0 rounds=0 managed=0
  for ((time = 0; time < times && failed == 0; ++time)); do enroll_and_release; done
  until_true 10 empty || complain "not empty: $(ctl status --json)"
  grep -E 'error|warning' "$dir/log" >&2 && complain "swapd complains"
  kill "$front"
  wait "$front" || complain "swapd's exit status is $?"
  front=
  printf '%s: %s of %s times good, %s processes enrolled, %s calls\n' "$observer" "$good" "$times" "$managed" "$rounds"
done
[ "$failed" -eq 0 ] || exit 1
