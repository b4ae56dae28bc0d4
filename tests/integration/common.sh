# Functions that the scripts of tests/integration share. The caller has sourced scripts/common.sh, and has set build, dir (its own directory) and,
# for choose_observers, observe (the value of --observe).
# shellcheck shell=bash

# read_options "NAME…" ARGUMENT…: sets the variable NAME for each --NAME VALUE. --help prints the comment at the script's top.
read_options() {
  local names=" $1 "
  shift
  while [ $# -gt 0 ]; do
    case $1 in
      --help | -h) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
      --*[!a-z]*) die "unknown option $1; see --help" ;;
      --*)
        [[ $names == *" ${1#--} "* ]] || die "unknown option $1; see --help"
        [ -n "${2:-}" ] || die "option $1 needs a value; see --help"
        printf -v "${1#--}" '%s' "$2"
        shift 2
        ;;
      *) die "unknown option $1; see --help" ;;
    esac
  done
}
choose_observers() {
  case $observe in
    both) observers=(seccomp bpf) ;;
    seccomp | bpf) observers=("$observe") ;;
    *) die "unknown observer $observe: seccomp, bpf or both" ;;
  esac
}
# test_program NAME: where it was built.
test_program() {
  local found
  found=$(find "$build" -type f -name "$1" -perm -u+x | head -1)
  [ -n "$found" ] || die "no program $1 in $build: build the tests first"
  printf '%s\n' "$found"
}
ctl() { "$build/src/cli/swapctl" --socket "$dir/s" "$@"; }
complain() {
  printf '%s: %s: %s\n' "$(basename "$0" .sh)" "$observer" "$*" >&2
  failed=1
}
# until_true SECONDS COMMAND…: asks again and again.
until_true() {
  local end=$(($(date +%s) + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    [ "$(date +%s)" -lt "$end" ] || return 1
    sleep 0.02
  done
}
# start_swapd [OPTION…]. front: the process that was started; swapd: the daemon.
start_swapd() {
  "$build/daemon/swapd" --foreground --bus none --observe "$observer" --socket "$dir/s" --state-dir "$dir/state" "$@" 2>>"$dir/log" &
  front=$!
  until_true 10 ctl status || { tail -5 "$dir/log" >&2; die "swapd does not answer"; }
  swapd=$(ctl status --json | sed 's/.*"pid":\([0-9]*\).*/\1/')
}
# Nobody is managed, and nothing held.
empty() {
  local status
  status=$(ctl status --json) || return 1
  grep -q '"donations_active":0' <<<"$status" && grep -q '"listeners":0' <<<"$status" && grep -q '"managed_threads":0' <<<"$status"
}
