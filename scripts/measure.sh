#!/bin/bash
# Measures what docs/results.md shows, and puts the tables there in place of the old ones.
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
run apps apps-important apps --important "${bpf[@]}"
for history in calls holders; do run apps apps-$history apps --history $history "${common[@]}"; done

taps=(--observe bpf --json)
run taps tap-disk tap-disk "${taps[@]}" --plot "$out/tap-disk.svg"
run taps tap-network tap-network "${taps[@]}" --plot "$out/tap-network.svg"
run shape shape-accuracy shape-accuracy "${taps[@]}"
run shape shape-overhead shape-overhead "${taps[@]}"
run shape shape-rivals shape-rivals "${taps[@]}"
run taps tap-stream tap-stream --repeat 3 --limits 16MiB,17MiB,18MiB,19MiB "${taps[@]}" --plot "$out/tap-stream.svg"

[ -n "$write" ] || exit 0
"$project/scripts/results-write.py" "$out" "$project/docs/results.md"
say "written: docs/results.md"
