#!/bin/bash
# Programs nobody here wrote, plain and supervised: the same results, test by test.
#
#   tests/integration/transparency.sh [--only SUITE,...] [--modes MODE,...] [--modules MODULE,...] [--build DIR] [--no-install]
#
# Suites: python (CPython's own regression tests of what waits, or of --modules), go and java (a program under load), pipelines (500 of them in dash,
# with a storm of SIGCHLD), strace and gdb (attached to a supervised process). Modes: bpf, calls and holders (seccomp with either
# history). What differs is run again, five times each way: what varies without swapd too is told apart from what swapd changes.
# Logs are left in out/transparency. An hour for all, most of it for CPython's multiprocessing; needs root.
set -euo pipefail
project=$(cd "$(dirname "$0")/../.." && pwd)
. "$project/scripts/common.sh"
. "$project/tests/integration/common.sh"
export LC_ALL=C

modes=bpf,calls,holders only=python,go,java,pipelines,strace,gdb modules= build=$project/build/dev install=yes
while [ $# -gt 0 ]; do
  case $1 in
    --only) only=${2:?--only SUITE}; shift 2 ;;
    --modules) modules=${2:?--modules MODULE}; shift 2 ;;
    --modes) modes=${2:?--modes MODE}; shift 2 ;;
    --build) build=$(realpath "${2:?--build DIR}"); shift 2 ;;
    --no-install) install=; shift ;;
    --help | -h) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) die "unknown option $1; see --help" ;;
  esac
done
IFS=, read -ra modes <<<"$modes"
IFS=, read -ra suites <<<"$only"
for mode in "${modes[@]}"; do [[ $mode =~ ^(bpf|calls|holders)$ ]] || die "unknown mode $mode: bpf, calls or holders"; done
for suite in "${suites[@]}"; do
  [[ $suite =~ ^(python|go|java|pipelines|strace|gdb)$ ]] || die "unknown suite $suite: python, go, java, pipelines, strace or gdb"
done
need_root
[ -x "$build/daemon/swapd" ] && [ -x "$build/src/cli/swapctl" ] || die "no swapd and swapctl in $build: build them first"
[ -z "$install" ] || install_packages transparency

programs=$project/tests/integration/transparency
logs=$project/out/transparency
rm -rf "$logs"
mkdir -p "$logs"
dir=$(mktemp -d /tmp/swapd-transparency-XXXXXX)
front= observer= mode= failed=0 prefix=()
target= tool=
end_swapd() {
  [ -n "$front" ] || return 0
  kill "$front" 2>/dev/null || true
  wait "$front" || complain "swapd's exit status is $?"
  front=
}
cleanup() {
  exec 9>&-
  [ -z "$tool" ] || kill "$tool" 2>/dev/null || true
  [ -z "$target" ] || kill -9 "$target" 2>/dev/null || true
  end_swapd
  rm -rf "$dir"
}
trap cleanup EXIT

# use MODE: what runs from now on does so under it; plain: on its own.
use() {
  end_swapd
  mode=$1 prefix=()
  [ "$mode" = plain ] && return
  observer=seccomp
  [ "$mode" != bpf ] || observer=bpf
  printf '[observe]\nhistory = "%s"\n' "${mode/bpf/holders}" >"$dir/policy.toml"
  start_swapd --config "$dir/policy.toml"
  prefix=("$build/src/cli/swapctl" --socket "$dir/s" run --)
}

# --- the suites: suite_NAME FILE puts one line a test into FILE ----------------------------------------------------------------

if [ -n "$modules" ]; then
  IFS=, read -ra modules <<<"$modules"
else
  modules=(test_signal test_subprocess test_socket test_select test_selectors test_poll test_epoll test_threading test_threadsignals
    test_fcntl test_mailbox test_os test_pty test_wait3 test_wait4 test_eintr test_multiprocessing_fork test_multiprocessing_forkserver
    test_multiprocessing_spawn test_asyncio)
fi

# regrtest FILE ARGUMENT…: CPython's runner; none of what needs a network, nor a second virtual machine.
regrtest() {
  local out=$1 status=0
  shift
  rm -f "$dir/junit"
  (cd "$dir" && "${prefix[@]}" /usr/bin/python3 -m test --timeout 300 --ignore "*VSOCK*" --junit-xml "$dir/junit" "$@" </dev/null >>"$out.log" 2>&1) || status=$?
  if [ -s "$dir/junit" ]; then
    /usr/bin/python3 "$programs/junit.py" "$dir/junit" >>"$out"
  else
    printf '%s: no results, status %s\n' "$1" "$status" >>"$out"
  fi
}
suite_python() {
  local module
  for module in "${modules[@]}"; do regrtest "$1" "$module"; done
}
plain_lines() { "${prefix[@]}" "$@" </dev/null >"$out" 2>"$out.log" || printf 'status: %s\n' "$?" >>"$out"; }
suite_go() { local out=$1; plain_lines "$dir/load"; }
suite_java() { local out=$1; plain_lines java -cp "$dir" Load; }
suite_pipelines() { local out=$1; plain_lines dash "$programs/pipelines.sh"; }

# start_target FILE: a process that waits for a line. target: its pid.
start_target() {
  rm -f "$dir/in"
  mkfifo "$dir/in"
  "${prefix[@]}" /usr/bin/python3 "$programs/target.py" <"$dir/in" >"$1.target" 2>&1 &
  target=$!
  exec 9>"$dir/in"
  until_true 20 grep -q ready "$1.target" || die "the target does not start: $(cat "$1.target")"
}
end_target() {
  local status=0
  echo >&9
  exec 9>&-
  wait "$target" || status=$?
  target=
  { sed 's/^ready .*/ready/' "$1.target"; echo "status: $status"; } >>"$1"
}
is_traced() { ! grep -q '^TracerPid:[[:space:]]*0$' "/proc/$target"/task/*/status; }
# Numbers that differ each time: addresses, process ids.
same_words() { sed -E "s/0x[0-9a-f]+/ADDRESS/g; s/\b$target\b/PID/g; s/LWP [0-9]+/LWP/g; s/ +/ /g"; }
suite_strace() {
  start_target "$1"
  strace -qq -ff -o "$1.trace" -e trace=read,write,kill -p "$target" 2>"$1.log" &
  tool=$!
  until_true 20 is_traced || complain "strace does not attach: $(cat "$1.log")"
  echo >&9
  until_true 60 grep -q rounds "$1.target" || complain "the traced target does not go on"
  kill -INT "$tool"
  wait "$tool" 2>/dev/null || true
  tool=
  cat "$1.trace".* | same_words | sort | uniq -c >"$1"
  end_target "$1"
}
suite_gdb() {
  start_target "$1"
  timeout 100 gdb -nx -batch -p "$target" -ex 'set confirm off' -ex 'handle SIGUSR1 nostop noprint pass' -ex 'info threads' -ex 'thread apply all bt 1' \
    -ex 'call (int)getpid()' -ex 'break kill' -ex "shell echo >$dir/in" -ex continue -ex 'bt 1' -ex 'continue 5' -ex 'print $rsi' -ex delete -ex detach \
    >"$1.out" 2>"$1.log" </dev/null || printf 'gdb: %s\n' "$?" >>"$1.out"
  same_words <"$1.out" >"$1"
  until_true 60 grep -q rounds "$1.target" || complain "the target does not go on after gdb"
  end_target "$1"
}

# --- comparing ---------------------------------------------------------------------------------------------------------------

# differing SUITE: the tests that did not give the same, plain and in this mode.
differing() { diff <(sort "$logs/plain.$1") <(sort "$logs/$mode.$1") | sed -n 's/^[<>] //p' | sed 's/: .*//' | sort -u; }
# once SUITE TEST: what came of the test, or of the whole suite where a test of it cannot be run alone.
once() {
  rm -f "$dir/again" "$dir/again".*
  if [ "$1" = python ]; then
    regrtest "$dir/again" "$(sed -E 's/^test\.(support\.)?//; s/\..*//' <<<"$2")" -m "$2"
    grep -F -- "$2" "$dir/again" | sort || echo "$2: not run"
  else
    "suite_$1" "$dir/again"
    sort "$dir/again"
  fi
}
# again SUITE TEST: true where five times each way give the same results.
again() {
  local suite=$1 test=$2 here=$mode i
  use plain
  for i in 1 2 3 4 5; do once "$suite" "$test"; done >"$dir/plainly"
  use "$here"
  for i in 1 2 3 4 5; do once "$suite" "$test"; done >"$dir/supervised"
  [ -s "$dir/plainly" ] && cmp -s <(sort -u "$dir/plainly") <(sort -u "$dir/supervised")
}
# That the plain run was one at all.
check_plain() {
  local suite=$1 file=$logs/plain.$1 least
  case $suite in python) least=${#modules[@]} ;; pipelines) least=501 ;; strace) least=200 ;; go) least=29 ;; java) least=21 ;; gdb) least=10 ;; esac
  ! grep -E '^(status: [^0]|gdb: )|no results' "$file" >&2 || die "$suite does not run here without swapd; see $file.log"
  [ "$(wc -l <"$file")" -ge "$least" ] || die "$suite gave $(wc -l <"$file") lines without swapd, $least at least should come; see $file.log"
}
compare() {
  local suite=$1 all same=0 tests=() test
  all=$(wc -l <"$logs/plain.$suite")
  mapfile -t tests < <(differing "$suite")
  same=$((all - ${#tests[@]}))
  local changed=0 varying=0
  [ "$suite" = python ] || tests=("${tests[@]:0:1}")  # all of a suite are run again at once
  for test in ${tests[@]+"${tests[@]}"}; do
    if again "$suite" "$test"; then
      varying=$((varying + 1))
      printf '  %s, %s: %s: not the same once, the same five times\n' "$mode" "$suite" "$test"
    else
      changed=$((changed + 1))
      printf '  %s, %s: %s: plain %s | supervised %s\n' "$mode" "$suite" "$test" "$(sort "$dir/plainly" | uniq -c | tr -s ' \n' ' ')" \
        "$(sort "$dir/supervised" | uniq -c | tr -s ' \n' ' ')"
      failed=1
    fi
  done
  printf '%-8s %-10s %5s of %s the same, %s vary, %s differ\n' "$mode" "$suite" "$same" "$all" "$varying" "$changed"
}

for suite in "${suites[@]}"; do
  case $suite in
    go) (cd "$dir" && GOCACHE=$dir/go GO111MODULE=off go build -o "$dir/load" "$programs/load.go") ;;
    java) javac -d "$dir" "$programs/Load.java" ;;
  esac
done
for mode in plain "${modes[@]}"; do
  use "$mode"
  for suite in "${suites[@]}"; do
    say "$mode: $suite"
    "suite_$suite" "$logs/$mode.$suite"
    [ "$mode" != plain ] || check_plain "$suite"
  done
  [ "$mode" != plain ] || continue
  for suite in "${suites[@]}"; do compare "$suite"; done
  until_true 20 empty || complain "not empty: $(ctl status --json)"
done
end_swapd
[ "$failed" -eq 0 ] || exit 1
