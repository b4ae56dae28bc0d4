#!/bin/bash
# PipeWire, which has its real-time threads from rtkit, under policies/desktop.toml with a rule's nice and with important waiters.
#
#   tests/integration/pipewire.sh [--observe seccomp|bpf|both] [--build DIR]
#
# On a system bus and a session bus of the test's own. rtkit gives a thread SCHED_RR with reset-on-fork only to a process that
# has RLIMIT_RTTIME (200 ms): the kernel kills it if another of its threads is made real-time and computes for that long. Its
# threads must keep their classes and flags throughout, and it must live. Skips (77) without PipeWire or rtkit.
set -euo pipefail
project=$(cd "$(dirname "$0")/../.." && pwd)
. "$project/scripts/common.sh"
. "$project/tests/integration/common.sh"

observe=both build=$project/build/dev
read_options "observe build" "$@"
need_root
choose_observers
rtkit=/usr/libexec/rtkit-daemon
for program in pipewire pw-cli dbus-daemon setpriv "$rtkit"; do
  command -v "$program" >/dev/null || { echo "skipped: no $program here"; exit 77; }
done
/usr/bin/python3 -c 'import dbus, gi' 2>/dev/null || { echo "skipped: no python3-dbus or python3-gi here"; exit 77; }

dir=$(mktemp -d /tmp/swapd-pipewire-XXXXXX)
pids=() front= failed=0 user=1000
trap end_all EXIT
own_buses
# rtkit asks polkit, whose rules are the machine's.
lax_polkit
# It may write no file, so its words go through a pipe.
"$rtkit" --stderr --no-canary 2> >(cat >"$dir/rtkit.log") &
pids+=($!)
until_true 10 owned org.freedesktop.RealtimeKit1 || { echo "skipped: rtkit does not run here: $(tail -1 "$dir/rtkit.log")"; exit 77; }
sed 's/^\[match.sound\]$/&\nnice = -15/' "$project/policies/desktop.toml" >"$dir/policy.toml"

# Of each thread: class, flag, real-time priority, nice value.
classes() {
  /usr/bin/python3 - "$pipewire" <<'X'
import os
import sys

names = {0: "other", 1: "fifo", 2: "rr", 3: "batch", 5: "idle"}
for tid in sorted(map(int, os.listdir(f"/proc/{sys.argv[1]}/task"))):
    policy = os.sched_getscheduler(tid)
    reset = "+reset" if policy & 0x40000000 else ""
    print(names[policy & ~0x40000000] + reset, os.sched_getparam(tid).sched_priority, os.getpriority(os.PRIO_PROCESS, tid))
X
}
has_real_time() { classes | grep -q 'rr+reset'; }
has() { [ "$(classes)" = "$1" ]; }

for observer in "${observers[@]}"; do
  rm -rf "$dir/state" "$dir/s" "$dir"/run/*
  setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs pipewire >"$dir/pipewire.log" 2>&1 &
  pipewire=$!
  pids+=("$pipewire")
  until_true 10 has_real_time || { echo "skipped: PipeWire has no real-time thread of rtkit: $(tail -1 "$dir/rtkit.log")"; exit 77; }
  before=$(classes)
  limit=$(sed -n 's/^Max realtime timeout  *\([^ ]*\).*/\1/p' "/proc/$pipewire/limits")
  # As renice(1) would: of the threads of before, the nice value alone is another.
  want=$(sed 's/ -\{0,1\}[0-9]*$/ -15/' <<<"$before")
  start_swapd --config "$dir/policy.toml"
  until_true 10 has "$want" || complain "with a rule's nice it has $(classes), and not $want (before: $before)"
  for _ in 1 2 3 4 5; do
    timeout 20 "$build/src/cli/swapctl" --socket "$dir/s" run --fifo 50 -- pw-cli info 0 >/dev/null 2>>"$dir/log" || complain "pw-cli: $?"
  done
  until_true 5 has "$want" || complain "after its waiters it has $(classes), and not $want"
  kill -0 "$pipewire" 2>/dev/null || complain "PipeWire has ended"
  lent=$(ctl status --json | sed 's/.*"donations_total":\([0-9]*\).*/\1/')
  kill "$front"
  wait "$front" || true
  front=
  [ "$(classes | cut -d' ' -f1,2)" = "$(cut -d' ' -f1,2 <<<"$want")" ] || complain "without swapd it has $(classes), and not $want"
  kill "$pipewire" 2>/dev/null || true
  echo "$observer: PipeWire with RLIMIT_RTTIME $limit lives; lent to $lent times; threads ${want//$'\n'/, }"
done
exit "$failed"
