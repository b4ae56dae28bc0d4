#!/bin/bash
# Measures what docs/results shows: the raw lines of each run, and with --write the pages of them.
#
#   scripts/measure.sh [--build DIR] [--out DIR] [--only NAME,…] [--observe seccomp|bpf|both] [--iterations N] [--repeat N] [--write]
#
# NAME: client-server, nice, split, cpus, strict, multi-server, cascade, pipeline, with both observers; overhead; with the bpf observer
# futex, latency, scale, overhead-bpf, chat; apps and important (which need the packages of section apps);
# thin-client (section thin-client); cosched (section cosched); batch (section batch); shape and taps (section taps); model. The lines go to --out (kept, so that parts can be measured again); --write copies all that is there to docs/results/raw and writes the pages
# (scripts/results.py). Builds with changes that are not committed are refused for --write: their lines could not be traced.
# Takes more than an hour on a machine that does nothing else, which is the only one worth measuring on.
set -euo pipefail
. "$(dirname "$0")/common.sh"

build=$project/build/dev out=/tmp/swapd-results only= iterations=100 repeat=10 write= observe=both
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=${2:?--build DIR}; shift 2 ;;
    --out) out=${2:?--out DIR}; shift 2 ;;
    --only) only=,${2:?--only NAME}, ; shift 2 ;;
    --iterations) iterations=${2:?--iterations N}; shift 2 ;;
    --repeat) repeat=${2:?--repeat N}; shift 2 ;;
    --observe) observe=${2:?--observe seccomp, bpf or both}; shift 2 ;;
    --write) write=yes; shift ;;
    --help | -h) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) die "unknown option $1; see --help" ;;
  esac
done
need_root
mkdir -p "$out"

# wanted PART: it is to be measured.
wanted() { [ -z "$only" ] || [[ $only == *,$1,* ]]; }
# run PART NAME WORKLOAD OPTION…
run() {
  local part=$1 name=$2
  shift 2
  wanted "$part" || return 0
  say "$name"
  "$build/bench/swapbench" "$@" --json >"$out/$name.jsonl.new"
  mv "$out/$name.jsonl.new" "$out/$name.jsonl"
}

# The papers' workloads, with each observer; bpf's names end in -bpf.
measure_with() {
  local observer=$1 s=$2
  local common=(--observe "$observer")
  local both=(--under hand-set,swapd --repeat "$repeat" --iterations "$iterations")
  local mechanisms=socket,pipe,msg,sem,signal,flock,fifo,tcp,udp,mq,record-lock,eventfd,epoll,child-exit
  local all=(client-server --mechanism $mechanisms --hogs 10)
  run client-server "client-server$s" "${all[@]}" --cpus 1 --iterations 100 --under vanilla,swapd --baseline --repeat "$repeat" "${common[@]}"
  run nice "nice$s" "${all[@]}" --client-nice -10 --cpus 1 "${both[@]}" "${common[@]}"
  run split "split$s" "${all[@]}" --sessions split --cpus 1 "${both[@]}" "${common[@]}"
  run split "nice-split$s" "${all[@]}" --client-nice -10 --sessions split --cpus 1 "${both[@]}" "${common[@]}"
  run cpus "cpus$s" "${all[@]}" --cpus 2 "${both[@]}" "${common[@]}"
  run cpus "nice-cpus$s" "${all[@]}" --client-nice -10 --cpus 2 "${both[@]}" "${common[@]}"
  run strict "strict$s" "${all[@]}" --client-nice -10 --strict --cpus 1 --iterations 100 --under swapd --baseline --repeat 9 "${common[@]}"
  local quantum hogs
  for quantum in 200 20; do
    for hogs in 0 10; do
      run multi-server "multi-$quantum-$hogs$s" multi-server --quantum-ms $quantum --hogs $hogs --under swapd --repeat 5 --show-why "${common[@]}"
    done
  done
  run cascade "cascade$s" cascade --depth 8 --hogs 10 --under vanilla,hand-set,swapd --baseline --iterations 100 --show-why --repeat "$repeat" "${common[@]}"
  run pipeline "pipeline$s" pipeline --hogs 10 --under vanilla,hand-set,swapd --baseline --repeat "$repeat" "${common[@]}"
}
case $observe in
  both) measure_with seccomp ""; measure_with bpf -bpf ;;
  seccomp) measure_with seccomp "" ;;
  bpf) measure_with bpf -bpf ;;
  *) die "unknown observer $observe: seccomp, bpf or both" ;;
esac

common=(--observe seccomp)
run overhead overhead overhead "${common[@]}"
run overhead loaded overhead --loaded "${common[@]}"

bpf=(--observe bpf)
futex=(client-server --mechanism mutex,mutex-private,condvar,condvar-private,pi-mutex --server-nice 19 --hogs 10 --repeat "$repeat")
run futex futex "${futex[@]}" --under swapd --baseline --iterations "$iterations" "${bpf[@]}"
run futex nice-futex "${futex[@]}" --client-nice -10 --under hand-set,swapd --iterations "$iterations" "${bpf[@]}"
run latency latency latency "${bpf[@]}"
run scale scale scale --rate 0 "${bpf[@]}"
run overhead-bpf overhead-bpf overhead "${bpf[@]}"
run apps apps-bpf apps "${bpf[@]}"
run apps apps-important apps --important sleeper "${bpf[@]}"
run important apps-important-idle apps --important client --under vanilla,swapd --repeat 61 "${bpf[@]}"
run important apps-important-seccomp apps --important client --hogs 0,4 --observe seccomp
run important apps-important-client apps --important client --hogs 4 --under vanilla,hand-set,swapd "${bpf[@]}"
run chat chat chat "${bpf[@]}"
for history in calls holders; do run apps apps-$history apps --history $history "${common[@]}"; done

run thin-client thin-client thin-client --sessions 0,10,25,50 --repeat "$repeat" "${bpf[@]}"
run thin-client thin-client-nice thin-client --sessions 0,10,25,50 --client-nice -10 --repeat "$repeat" "${bpf[@]}"
run thin-client thin-client-browser thin-client --player vnc-browser --sessions 0,10,25 --seconds 20 --repeat "$repeat" "${bpf[@]}"

# Half a second passes until a job is found: a run lasts longer than that.
long=(--dedicated 3 --limit 60 --repeat 5)
run cosched cosched-latency cosched latency --receive spin,spin-block --competitors 1,2,4,8 "${long[@]}" "${bpf[@]}"
run cosched cosched-barrier cosched barrier --receive spin,spin-block --grain 10,100,1000,10000 --competitors 1,4 "${long[@]}" "${bpf[@]}"
run cosched cosched-mixed cosched mixed --program own,openmpi,openmp --dedicated 5 "${bpf[@]}"
run cosched cosched-two-jobs cosched two-jobs --program own,openmp,own+openmp,openmpi --under vanilla,swapd,nice-5,freeze --dedicated 5 "${bpf[@]}"
run cosched cosched-passive cosched two-jobs --program own,openmp,own+openmp --under passive --dedicated 5 "${bpf[@]}"
run cosched cosched-yield cosched two-jobs --program own,openmpi --under yield-when-idle --dedicated 5 "${bpf[@]}"
run cosched cosched-ranks cosched barrier --ranks 5 --program own,openmpi --competitors 0 --under vanilla,yield-when-idle,swapd "${bpf[@]}"
run cosched cosched-openmp cosched barrier --program openmp --grain 100,1000 --competitors 1,2,4 --under vanilla,swapd,passive "${long[@]}" "${bpf[@]}"
run cosched cosched-nodes cosched latency --nodes --receive spin,spin-block --competitors 1,2,4 "${long[@]}" "${bpf[@]}"
run cosched cosched-nodes-barrier cosched barrier --nodes --grain 100,1000 --competitors 1,4 "${long[@]}" "${bpf[@]}"
run cosched cosched-idle cosched barrier --program own,openmpi,openmp --competitors 0 --dedicated 3 --repeat 21 "${bpf[@]}"
run cosched cosched-churn cosched barrier --competitors 2 --churn 10 --churn-nice 5 --dedicated 40 --limit 200 --repeat 3 "${bpf[@]}"
run batch apps-batch apps --apps build,ffmpeg --repeat 21 "${bpf[@]}"

taps=(--observe bpf)
run taps tap-disk tap-disk "${taps[@]}"
run taps tap-network tap-network "${taps[@]}"
run shape shape-accuracy shape-accuracy "${taps[@]}"
run shape shape-overhead shape-overhead "${taps[@]}"
run shape shape-rivals shape-rivals "${taps[@]}"
run taps tap-stream tap-stream --repeat 3 --limits 16MiB,17MiB,18MiB,19MiB "${taps[@]}"

if wanted model; then
  say model
  "$build/bench/model_benchmark" --benchmark_filter='memory|event_stream' --benchmark_repetitions="$repeat" --benchmark_format=json >"$out/model.benchmark"
  "$project/scripts/benchmark-lines.py" "$project" "$out/model.benchmark" >"$out/model.jsonl.new"
  mv "$out/model.jsonl.new" "$out/model.jsonl"
fi

[ -n "$write" ] || exit 0
! grep -l -- '-dirty"' "$out"/*.jsonl >&2 || die "lines of a build with changes that are not committed"
cp "$out"/*.jsonl "$project/docs/results/raw/"
"$project/scripts/results.py"
say "written: docs/results"
