#!/bin/bash
# Measures what docs/results.md shows, and writes its section "The runs" anew.
#
#   scripts/measure.sh [--build DIR] [--out DIR] [--only NAME,…] [--observe seccomp|bpf|both] [--iterations N] [--write]
#
# NAME: client-server, nice, split, cpus, strict, multi-server, cascade, pipeline, with both observers; overhead; with the bpf observer
# futex, latency, scale, overhead-bpf; apps (which needs the packages of section apps); shape and taps (section taps). The --json
# lines go to --out (kept, so that parts can be measured again); --write puts tables and figures of all that is there into docs/.
# Takes more than an hour on a machine that does nothing else, which is the only one worth measuring on.
set -euo pipefail
. "$(dirname "$0")/common.sh"

build=$project/build/dev out=/tmp/swapd-results only= iterations=100 write= observe=both
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=${2:?--build DIR}; shift 2 ;;
    --out) out=${2:?--out DIR}; shift 2 ;;
    --only) only=,${2:?--only NAME}, ; shift 2 ;;
    --iterations) iterations=${2:?--iterations N}; shift 2 ;;
    --observe) observe=${2:?--observe seccomp, bpf or both}; shift 2 ;;
    --write) write=yes; shift ;;
    --help | -h) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) die "unknown option $1; see --help" ;;
  esac
done
need_root
mkdir -p "$out"

# run PART FILE WORKLOAD OPTION…: the command goes beside the lines, for the page.
run() {
  local part=$1 file=$2
  shift 2
  [ -z "$only" ] || [[ $only == *,$part,* ]] || return 0
  say "$file"
  echo "swapbench $*" | sed "s|$out/||" >"$out/$file.command"
  "$build/bench/swapbench" "$@" >"$out/$file.json.new"
  mv "$out/$file.json.new" "$out/$file.json"
}

# Lines 3 to 7 of the papers' workloads, with each observer; bpf's files end in -bpf.
measure_with() {
  local observer=$1 s=$2
  local common=(--observe "$observer" --json)
  local both=(--under hand-set,swapd --repeat 5 --iterations "$iterations")
  local mechanisms=socket,pipe,msg,sem,signal,flock,fifo,tcp,udp,mq,record-lock,eventfd,epoll,child-exit
  local all=(client-server --mechanism $mechanisms --hogs 10)
  run client-server "client-server$s" "${all[@]}" --cpus 1 --iterations 100 --under vanilla,swapd --baseline "${common[@]}" \
    --plot "$out/client-server$s.svg"
  run nice "nice$s" "${all[@]}" --client-nice -10 --cpus 1 "${both[@]}" "${common[@]}"
  run split "split$s" "${all[@]}" --sessions split --cpus 1 "${both[@]}" "${common[@]}"
  run split "nice-split$s" "${all[@]}" --client-nice -10 --sessions split --cpus 1 "${both[@]}" "${common[@]}"
  run cpus "cpus$s" "${all[@]}" --cpus 2 "${both[@]}" "${common[@]}"
  run cpus "nice-cpus$s" "${all[@]}" --client-nice -10 --cpus 2 "${both[@]}" "${common[@]}"
  run strict "strict$s" "${all[@]}" --client-nice -10 --strict --cpus 1 --iterations 100 --under swapd --baseline --repeat 9 "${common[@]}"
  local quantum hogs
  for quantum in 200 20; do
    for hogs in 0 10; do
      run multi-server "multi-$quantum-$hogs$s" multi-server --quantum-ms $quantum --hogs $hogs --under swapd --repeat 5 --show-why \
        "${common[@]}" --plot "$out/multi-$quantum-$hogs$s.svg"
    done
  done
  run cascade "cascade$s" cascade --depth 8 --hogs 10 --under vanilla,hand-set,swapd --baseline --iterations 100 --show-why \
    "${common[@]}" --plot "$out/cascade$s.svg"
  run pipeline "pipeline$s" pipeline --hogs 10 --under vanilla,hand-set,swapd --baseline --repeat 3 "${common[@]}"
}
case $observe in
  both) measure_with seccomp ""; measure_with bpf -bpf ;;
  seccomp) measure_with seccomp "" ;;
  bpf) measure_with bpf -bpf ;;
  *) die "unknown observer $observe: seccomp, bpf or both" ;;
esac

common=(--observe seccomp --json)
run overhead overhead overhead "${common[@]}"
run overhead loaded overhead --loaded "${common[@]}"

bpf=(--observe bpf --json)
futex=(client-server --mechanism mutex,mutex-private,condvar,condvar-private,pi-mutex --server-nice 19 --hogs 10 --repeat 5)
run futex futex "${futex[@]}" --under swapd --baseline --iterations "$iterations" "${bpf[@]}"
run futex nice-futex "${futex[@]}" --client-nice -10 --under hand-set,swapd --iterations "$iterations" "${bpf[@]}"
run latency latency latency "${bpf[@]}"
run scale scale scale --rate 0 "${bpf[@]}"
run overhead-bpf overhead-bpf overhead "${bpf[@]}"
run apps apps-bpf apps "${bpf[@]}"
for history in calls holders; do run apps apps-$history apps --history $history "${common[@]}"; done

taps=(--observe bpf --json)
run taps tap-disk tap-disk "${taps[@]}" --plot "$out/tap-disk.svg"
run taps tap-network tap-network "${taps[@]}" --plot "$out/tap-network.svg"
run shape shape-accuracy shape-accuracy "${taps[@]}"
run shape shape-overhead shape-overhead "${taps[@]}"
run shape shape-rivals shape-rivals "${taps[@]}"
run taps tap-stream tap-stream --repeat 3 --limits 16MiB,17MiB,18MiB,19MiB "${taps[@]}" --plot "$out/tap-stream.svg"

[ -n "$write" ] || exit 0
table() {
  local kind=$1 file
  shift
  for file in "$@"; do
    [ -s "$out/$file.json" ] || continue
    printf '`%s`\n\n' "$(cat "$out/$file.command")"
    python3 "$project/scripts/results-table.py" "$kind" "$out/$file.json"
    echo
  done
}
figures() {
  local name
  for name in "$@"; do
    [ ! -s "$out/$name.svg" ] || cp "$out/$name.svg" "$project/docs/$name.svg"
    [ ! -s "$project/docs/$name.svg" ] || printf '![%s](%s.svg)\n' "$name" "$name"
  done
  echo
}
page=$project/docs/results.md
{
  sed '/^## The runs$/,$d' "$page"
  printf '## The runs\n\nMachine: %s CPUs (%s), Linux %s, Debian %s, shared with others; %s. Each table has the command that made it;\n' \
    "$(nproc)" "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)" "$(uname -r | cut -d- -f1)" \
    "$(cat /etc/debian_version)" "$(date -I)"
  printf '`scripts/measure.sh --write` runs them all and writes this section. Means, where it does not say p50.\n\n'
  printf '### client-server\n\n'
  table ratio client-server client-server-bpf
  figures client-server client-server-bpf
  printf '### Nice clients, sessions of their own, two CPUs: p50 against hand-set\n\n'
  table ratio-p50 nice split nice-split cpus nice-cpus nice-bpf split-bpf nice-split-bpf cpus-bpf nice-cpus-bpf
  printf '### Nice clients under a strict policy\n\n'
  table ratio strict strict-bpf
  printf '### multi-server\n\n'
  table plain multi-200-0 multi-200-10 multi-20-0 multi-20-10
  table plain multi-200-0-bpf multi-200-10-bpf multi-20-0-bpf multi-20-10-bpf
  cat <<'TEXT'
`mean_to_fastest_from_3` is the mean of the iterations from the third on against the fastest server alone, `to_fastest_from_3` the worst of
them (T = 20 ms: from the eighth). An iteration may contain the 50 ms of each second that the kernel's fair server gives ordinary
tasks (the losing servers, and the hogs), which no donation can take back; with the median over repeats, iteration by iteration, it shows less.
`fewest_candidates` is the fewest servers that `swapctl why` named, asked in each iteration.

TEXT
  figures multi-200-10 multi-20-10
  printf '### cascade\n\n'
  table plain cascade cascade-bpf
  figures cascade
  printf '### overhead\n\n'
  table plain overhead loaded
  printf '### pipeline\n\n'
  table plain pipeline pipeline-bpf
  printf '### Mutexes and condition variables whose holder has nice 19\n\n'
  table ratio futex
  table ratio-p50 nice-futex
  printf '### latency\n\n'
  table plain latency
  printf '### scale\n\n'
  table plain scale
  printf '### overhead of the bpf observer\n\n'
  table plain overhead-bpf
  printf '### apps\n\n'
  table plain apps-bpf apps-calls apps-holders
  printf '### Shaping: accuracy, overhead, and what people use today\n\n'
  table accuracy shape-accuracy
  table plain shape-overhead shape-rivals
  printf '### taps\n\n'
  table plain tap-disk tap-network tap-stream
  figures tap-disk tap-network tap-stream
  [ ! -s "$out/demo.md" ] || cat "$out/demo.md"
} >"$out/page.md"
mv "$out/page.md" "$page"
say "written: docs/results.md"
