#!/bin/bash
# What scripts/kernels.sh runs inside the virtual machine: writes KEY<tab>VALUE lines to /payload/out/results.
set -u
. /payload/where
out=/payload/out
export LC_ALL=C HOME=/root
mkdir -p "$project"
mount --bind /payload/tree "$project"
work=/var/tmp/kernels
mkdir -p "$work"
chmod 755 "$work"
cd "$work"

tell() {
  printf '%s\t%s\n' "$1" "$2" >>"$out/results"
  sync
  echo "$(cut -d' ' -f1 /proc/uptime) $1: $2"
}
until_true() { # SECONDS COMMAND…
  local end=$(($(date +%s) + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$(date +%s)" -lt "$end" ] || return 1
    sleep 0.1
  done
}
member() { sed -n 's/.*"'"$1"'":"\{0,1\}\([^",}]*\).*/\1/p' | head -1; } # of JSON on one line
pair=$(find "$build" -name pair -type f | head -1)
swapd=$build/daemon/swapd swapctl=$build/src/cli/swapctl

tell kernel "$(uname -r)"
tell surroundings "$(cat /proc/1/comm), $(stat -fc %T /sys/fs/cgroup)"

# --- the service ---------------------------------------------------------------------------------------------------------------------

until_true 150 systemctl is-active swapd
until_true 60 swapctl status
tell service "$(systemctl is-active swapd)"
swapctl status >"$out/status" 2>&1
swapctl status --json >"$out/status.json" 2>&1
journalctl -b --no-pager -o cat -u swapd >"$out/journal" 2>&1
tell observer "$(member observer <"$out/status.json")"
[ "$(member observer <"$out/status.json")" = bpf ] || tell failed "the service's observer is bpf"

# A provider in a group of its own beside a hog in another: the weight is lent.
weights() { cat /sys/fs/cgroup/kernserver.slice/cpu.weight /sys/fs/cgroup/kernserver.slice/kern-server.service/cpu.weight 2>/dev/null | tr '\n' ' '; }
systemd-run -q --unit=kern-hog --slice=kernhog.slice -p CPUWeight=100 taskset -c 0 sh -c 'while :; do :; done'
systemd-run -q --unit=kern-server --slice=kernserver.slice -p CPUWeight=100 taskset -c 0 "$pair" server "$work/s" "$work/flag"
until_true 20 test -S "$work/s"
swapctl enroll "$(systemctl show -p MainPID --value kern-server)" >"$out/weight" 2>&1
before=$(weights)
swapctl run --nice -10 -- taskset -c 0 "$pair" client "$work/s" >>"$out/weight" 2>&1 &
client=$!
differs() { [ "$(weights)" != "$before" ]; }
until_true 20 differs
lent=$(weights)
swapctl why "$client" >>"$out/weight" 2>&1
swapctl ps >>"$out/weight" 2>&1
touch "$work/flag"
wait "$client"
same() { [ "$(weights)" = "$before" ]; }
until_true 10 same
tell weight "$before / $lent / $(weights)"
{ [ "$lent" != "$before" ] && same; } || tell failed "a group's weight is lent and given back"
systemctl stop kern-hog kern-server 2>/dev/null

# --- each observer -------------------------------------------------------------------------------------------------------------------

systemctl stop swapd swapd-guard.socket swapd-attach.socket 2>/dev/null
ctl() { "$swapctl" --socket "$work/d" "$@"; }
# hogs at nice 0 on the CPU of client and server.
spin() { exec -a hog taskset -c 0 sh -c 'while :; do :; done'; }
# turn NAME SERVER-BY CLIENT-BY: a client asks a server for a computation eleven times; echoes the median of the last nine, in ms.
turn() {
  local name=$1 server_by=($2) client_by=($3)
  rm -f request answer
  mkfifo request answer
  ${server_by[@]+"${server_by[@]}"} taskset -c 0 bash -c '
    exec 3<request 4>answer
    while read -r _ <&3; do
      for ((i = 0; i < 800; i++)); do :; done
      echo done >&4
    done' </dev/null >/dev/null 2>>"$out/$name.err" &
  ${client_by[@]+"${client_by[@]}"} taskset -c 0 bash -c '
    exec 3>request 4<answer
    for ((n = 0; n < 11; n++)); do
      begin=${EPOCHREALTIME/./}
      echo go >&3
      read -r _ <&4
      end=${EPOCHREALTIME/./}
      echo $((end - begin))
      sleep 0.05
    done' </dev/null 2>>"$out/$name.err" | tail -9 >"$out/$name"
  wait $!
  sort -n "$out/$name" | awk '{ t[NR] = $1 } END { if (NR) printf "%.0f", t[int((NR + 1) / 2)] / 1000 }'
}
# Every piece is asked for: by a limit for networks, rules of names and cgroups, and a program with a listener.
printf '[class.wire.io.network]\nboth = "100MiB"\n[match.x]\ncomm = "x"\ncgroup = "/x"\n' >all.toml
"$swapd" --foreground --bus none --config all.toml --socket "$work/d" --state-dir "$work/state" 2>"$out/swapd-all" &
daemon=$!
until_true 150 ctl status
ctl run --class wire -- true >"$out/status-all" 2>&1
ctl status >>"$out/status-all" 2>&1
ctl status --json >"$out/status-all.json" 2>>"$out/status-all"
lacks=$(grep -o '"what":"[^"]*"' "$out/status-all.json" | cut -d'"' -f4 | paste -sd';' | sed 's/;/; /g')
tell lacks "${lacks:-nothing}"
kill "$daemon"
wait "$daemon"

for observer in bpf seccomp; do
  "$swapd" --foreground --bus none --observe "$observer" --socket "$work/d" --state-dir "$work/state-$observer" 2>"$out/swapd-$observer" &
  daemon=$!
  if until_true 150 ctl status; then
    tell "observer-$observer" "$(ctl status --json | member observer)"
    idle=$(turn "idle-$observer" '' 'chrt -f 50')
    hogs=()
    for _ in 1 2 3 4; do
      spin &
      hogs+=($!)
    done
    vanilla=$(turn "vanilla-$observer" '' 'chrt -f 50')
    ours=$(turn "swapd-$observer" "$swapctl --socket $work/d run --" "$swapctl --socket $work/d run --fifo 50 --")
    kill "${hogs[@]}"
    tell "ratio-$observer" "$idle / $vanilla / $ours ms"
    [ "${ours:-9999}" -lt "$((${vanilla:-0} / 2))" ] || tell failed "$observer: a FIFO client waits half as long with swapd as without, beside 4 hogs"
    ctl class create slow --write 2MiB >"$out/limit-$observer" 2>&1
    begin=$(date +%s%N)
    ctl run --class slow -- dd if=/dev/zero of="$work/file" bs=64k count=192 >>"$out/limit-$observer" 2>&1
    took=$((($(date +%s%N) - begin) / 1000000))
    # 12 MiB, of which the first second's worth may go at once.
    tell "limit-$observer" "12 MiB in $(awk -v ms="$took" 'BEGIN { printf "%.1f s", ms / 1000 }')"
    [ "$took" -ge 4500 ] || tell failed "$observer: 12 MiB in a class of 2 MiB/s take 5 s or more"
  else
    tell failed "swapd with the observer $observer answers"
  fi
  kill "$daemon"
  wait "$daemon"
  rm -f "$work/file"
done

# --- the core of the integration tests ---------------------------------------------------------------------------------------------

# Tests of times, which mean nothing on a processor that is emulated. The others have patience.
measures=ShareTest.ANewbornStartsAtOnce:BpfCpuTime.OfABurstThatIsOver:BpfKinds.ADisksCompletionGivesNoneThoughProvidersAreBusy
export SWAPD_TEST_PATIENCE=6
tell unmeasured "${measures//:/, }"

passed=0 failed=0 skipped=0
# run_test PROGRAM [COMMAND…]: its own counts; a failed one is named. With COMMAND… before it.
run_test() {
  local name=$1 program log=$out/test-$1${2:+-$2} status=0
  shift
  program=$(find "$build/tests" -name "test_$name" -type f | head -1)
  [ -n "$program" ] || return 0
  (cd "$(dirname "$program")" && timeout 600 env GTEST_FILTER="-$measures" ${@:+"$@"} "$program") >"$log" 2>&1 || status=$?
  local good bad left
  good=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests\{0,1\}\..*/\1/p' "$log")
  bad=$(grep -c '^\[  FAILED  \] .* ([0-9]* ms)$' "$log")
  left=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) tests\{0,1\}, .*/\1/p' "$log")
  if [ -z "$good" ]; then
    good=$(grep -c '^\[       OK \]' "$log")
    bad=$((bad + 1))
    tell failed "$name ended with status $status after $(grep '^\[ RUN' "$log" | tail -1 | cut -c14-)"
  fi
  passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + ${left:-0}))
  grep '^\[  FAILED  \] .* ([0-9]* ms)$' "$log" | sed 's/^\[  FAILED  \] \(.*\) ([0-9]* ms)$/\1/' | cut -d, -f1 | while read -r test; do tell failed "$test"; done
  echo "$(cut -d' ' -f1 /proc/uptime) $name: $good passed, $bad failed, ${left:-0} skipped"
}
for test in sys_bpf_open sys_bpf_tracer sys_bpf_follow sys_bpf_cpu_time sys_bpf_waker sys_bpf_silence sys_exec_events sys_seccomp \
  sys_shaping_sources sys_freezer_group observe_bpf observe_resolver actuate_linux daemon_bpf daemon_pieces daemon_inversion daemon_freeze; do
  before=$failed
  run_test "$test"
  [ "$test" != sys_freezer_group ] || [ ! -s "$out/test-$test" ] || tell freezer "$(grep -c '^\[       OK \].*v2' "$out/test-$test") tests passed, $((failed - before)) failed"
  # The programs look for ids in another way there, and do not know what a thread that execs was called before.
  [ "$test" != sys_bpf_tracer ] || run_test "$test" unshare --pid --fork --mount-proc env GTEST_FILTER=-Bpf.ExecByAnotherThreadMovesTheSlot
  tell tests "$passed passed, $failed failed, $skipped skipped"
done
tell finished yes
