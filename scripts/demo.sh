#!/bin/bash
# Three priority inversions between programs nobody here wrote, without swapd and with it.
#
#   scripts/demo.sh [--build DIR] [--runs N] [--stories abc] [--record] [--policy] [--without-swapd] [--no-install]
#
#   (a) psql asks a PostgreSQL backend for a query that takes a second of CPU
#   (b) flock(1) waits for a lock that a nice-19 compression job holds
#   (c) sha256sum reads what gzip decompresses
#
# gzip, because its tables fit into a CPU's own cache: what xz needs in time doubles where a neighbour uses the memory.
# The one who waits runs at FIFO 50. It, whom it waits for, and ten busy loops share one CPU. Everything lives in a temporary
# directory and is ended by its process id. Renders the wait graph to out/. With --record what swapd decides in each story is
# recorded there too, decided again twice, and compared. Needs root; about seven minutes once built.
#
# With --policy story (a) alone, and nothing is started by swapctl: PostgreSQL and psql are started plainly, and a policy of nine lines
# says that swapd manages both, that psql is important, and that it lends strictly.
set -euo pipefail
. "$(dirname "$0")/common.sh"
export LC_ALL=C

build_dir= runs=5 stories=abc with_swapd=yes install=yes record= policy=
while [ $# -gt 0 ]; do
  case $1 in
    --build) build_dir=$(realpath "${2:?--build DIR}"); shift 2 ;;
    --runs) runs=${2:?--runs N}; shift 2 ;;
    --stories) stories=${2:?--stories abc}; shift 2 ;;
    --record) record=yes; shift ;;
    --policy) policy=yes stories=a; shift ;;
    --without-swapd) with_swapd=; shift ;;
    --no-install) install=; shift ;;
    --help | -h) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) die "unknown option $1; see --help" ;;
  esac
done
need_root
[ -z "$install" ] || install_packages build demo
if [ -n "$with_swapd" ]; then
  [ -n "$build_dir" ] || build_preset release swapd swapctl
  swapd=$build_dir/daemon/swapd swapctl=$build_dir/src/cli/swapctl
  [ -x "$swapd" ] && [ -x "$swapctl" ] || die "no $swapd and $swapctl: build the targets swapd and swapctl first"
fi
pg_bin=$(find /usr/lib/postgresql -maxdepth 3 -name postgres -printf '%h\n' | sort -V | tail -n 1)
[ -n "$pg_bin" ] || die "PostgreSQL's server is not installed"

# --- what is running, and its end --------------------------------------------------------------------------------------------

tmp=$(mktemp -d -t swapd-demo.XXXXXX)
chmod 711 "$tmp"
hogs=() server= holder= daemon= recorder=

# end PID [SIGNAL]: ends a child of ours and waits for it.
end() {
  kill -s "${2:-TERM}" "$1" 2>/dev/null || true
  wait "$1" 2>/dev/null || true
}
# Each is a session with its group; timeout(1) alone would leave a loop that it has not heard of yet.
end_hogs() {
  local pid
  for pid in ${hogs[@]+"${hogs[@]}"}; do kill -- "-$pid" 2>/dev/null || kill "$pid" 2>/dev/null || true; done
  for pid in ${hogs[@]+"${hogs[@]}"}; do wait "$pid" 2>/dev/null || true; done
  hogs=()
}
end_server() { [ -z "$server" ] || end "$server" INT; server=; }
end_holder() { [ -z "$holder" ] || end "$holder"; holder=; }
end_daemon() { [ -z "$daemon" ] || end "$daemon"; daemon=; }
end_recorder() { [ -z "$recorder" ] || end "$recorder" INT; recorder=; }
cleanup() {
  end_recorder
  end_hogs
  end_holder
  end_server
  end_daemon
  rm -rf "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# --- where and how programs run ----------------------------------------------------------------------------------------------

# The last CPU we may use is the stories'; this script, and what it measures with, stays off it where there is another.
allowed=$(awk '/^Cpus_allowed_list:/ { print $2 }' /proc/self/status)
cpu=${allowed##*[,-]}
mapfile -t others < <(taskset -c -p $$ | sed 's/.*: //' | tr ',' '\n' |
  awk -F - -v last="$cpu" '{ for (c = $1; c <= ($2 == "" ? $1 : $2); c++) if (c != last) print c }')
[ ${#others[@]} -eq 0 ] || taskset -c -p "$(IFS=,; printf '%s' "${others[*]}")" $$ >/dev/null

as_postgres=(setpriv --reuid=postgres --regid=postgres --init-groups env -C /)

# use vanilla|swapd: sets `important` and `ordinary`, the words before a command.
use() {
  if [ -n "$policy" ]; then
    important=(taskset -c "$cpu")
    ordinary=("${important[@]}")
  elif [ "$1" = swapd ]; then
    important=("$swapctl" --socket "$tmp/swapd.sock" run --fifo 50 -- taskset -c "$cpu")
    ordinary=("$swapctl" --socket "$tmp/swapd.sock" run -- taskset -c "$cpu")
  else
    important=(taskset -c "$cpu" chrt --fifo 50)
    ordinary=(taskset -c "$cpu")
  fi
}

# Each in a session of its own, as programs of different terminals and services are; PostgreSQL does so with its backends too.
start_hogs() {
  local i
  for i in 1 2 3 4 5 6 7 8 9 10; do
    setsid taskset -c "$cpu" timeout 300 sh -c 'while :; do :; done' &
    hogs+=($!)
  done
  # Until each of them runs.
  local pid tries=0
  for pid in "${hogs[@]}"; do
    until grep -q . "/proc/$pid/task/$pid/children" 2>/dev/null || [ $((++tries)) -gt 1000 ]; do sleep 0.01; done
  done
}

write_policy() {
  cat >"$tmp/policy.toml" <<'END'
[donation]
strict = true
[match.postgres]
exe = "*/bin/postgres"
user = "postgres"
[match.psql]
comm = "psql"
user = "postgres"
fifo = 50
END
}
start_swapd() {
  mkdir -p "$tmp/state"
  local config=()
  [ -z "$policy" ] || { write_policy; config=(--config "$tmp/policy.toml"); }
  taskset -c "$allowed" "$swapd" --foreground --bus none --socket "$tmp/swapd.sock" --state-dir "$tmp/state" ${config[@]+"${config[@]}"} \
    >"$tmp/swapd.log" 2>&1 &
  daemon=$!
  local tries
  for ((tries = 0; tries < 100; tries++)); do
    ! "$swapctl" --socket "$tmp/swapd.sock" status >/dev/null 2>&1 || return 0
    kill -0 "$daemon" 2>/dev/null || break
    sleep 0.1
  done
  cat "$tmp/swapd.log" >&2
  die "swapd does not answer"
}

# measure COMMAND…: runs it and leaves its seconds in `seconds`. Given up after a minute.
measure() {
  local from=${EPOCHREALTIME/./} status=0
  timeout --foreground 60 "$@" >"$tmp/output" 2>&1 || status=$?
  local to=${EPOCHREALTIME/./}
  if [ "$status" -ne 0 ] && [ "$status" -ne 124 ]; then
    cat "$tmp/output" >&2
    die "exit status $status of: $*"
  fi
  seconds=$(awk -v us=$((to - from)) 'BEGIN { printf "%.3f", us / 1e6 }')
}

# --- (a) ---------------------------------------------------------------------------------------------------------------------

query="SELECT count(*) FROM generate_series(1, 1800000) AS n WHERE md5(n::text) < '8'"
ask=("${as_postgres[@]}" psql -X -q -A -t -h "$tmp/pg" -d postgres -c "$query")

prepare_a() {
  install -d -o postgres -g postgres -m 700 "$tmp/pg" "$tmp/pg/data"
  "${as_postgres[@]}" "$pg_bin/initdb" -D "$tmp/pg/data" --auth=trust --encoding=UTF8 --locale=C --no-sync >"$tmp/output" 2>&1 ||
    { cat "$tmp/output" >&2; die "initdb failed"; }
}
begin_a() {
  "${ordinary[@]}" "${as_postgres[@]}" "$pg_bin/postgres" -D "$tmp/pg/data" -k "$tmp/pg" -c listen_addresses= \
    -c jit=off -c max_parallel_workers_per_gather=0 -c autovacuum=off -c fsync=off >"$tmp/postgres.log" 2>&1 &
  server=$!
  local tries
  for ((tries = 0; tries < 150; tries++)); do
    ! "${as_postgres[@]}" "$pg_bin/pg_isready" -q -h "$tmp/pg" || return 0
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  cat "$tmp/postgres.log" >&2
  die "PostgreSQL does not answer"
}
# By policy alone a shell of the user's has begun before: it is no part of what the policy names, and the clock is its.
timed='from=${EPOCHREALTIME/./}; "$@" >/dev/null || exit; to=${EPOCHREALTIME/./}; echo $((to - from))'
run_a() {
  if [ -z "$policy" ]; then
    measure "${important[@]}" "${ask[@]}"
    return
  fi
  measure "${important[@]}" "${as_postgres[@]}" bash -c "$timed" timed "${ask[@]:${#as_postgres[@]}}"
  seconds=$(awk '{ printf "%.3f", $1 / 1e6 }' "$tmp/output")
}
end_a() { end_server; }
title_a="psql asks PostgreSQL"

# --- (b) ---------------------------------------------------------------------------------------------------------------------

prepare_b() {
  : >"$tmp/lock"
  head -c 26000000 /dev/urandom | base64 >"$tmp/log"
}
begin_b() { :; }
hold_lock() {
  local held
  mkfifo "$tmp/held"
  exec {held}<>"$tmp/held"  # both ways, so that nobody waits here for a holder that never came
  # The holder says when it has the lock; then the job begins.
  setsid "${ordinary[@]}" flock "$tmp/lock" nice -n 19 sh -c 'echo held >"$1"; exec gzip -6 -c "$2"' sh "$tmp/held" "$tmp/log" \
    >/dev/null &
  holder=$!
  read -r -t 60 _ <&"$held" || die "the lock's holder did not start"
  exec {held}<&-
  rm "$tmp/held"
}
run_b() {
  hold_lock
  measure "${important[@]}" flock -x "$tmp/lock" true
  end_holder
}
end_b() { :; }
title_b="flock(1) waits for nice-19 gzip"

# --- (c) ---------------------------------------------------------------------------------------------------------------------

prepare_c() { head -c 75000000 /dev/urandom | base64 | gzip -1 -c >"$tmp/archive.gz"; }
begin_c() { :; }
pipeline() { "${ordinary[@]}" gzip -dc "$tmp/archive.gz" | "${important[@]}" sha256sum; }
run_c() {
  local from=${EPOCHREALTIME/./}
  pipeline >"$tmp/output"
  local to=${EPOCHREALTIME/./}
  seconds=$(awk -v us=$((to - from)) 'BEGIN { printf "%.3f", us / 1e6 }')
}
end_c() { :; }
title_c="gzip -dc | sha256sum"

# --- recordings --------------------------------------------------------------------------------------------------------------

start_recorder() {
  [ -n "$record" ] || return 0
  recording=$project/out/demo-$1.rec
  mkdir -p "$project/out"
  rm -f "$recording"
  "$swapctl" --socket "$tmp/swapd.sock" record "$recording" >"$tmp/recorder.log" 2>&1 &
  recorder=$!
  local tries
  for ((tries = 0; tries < 100; tries++)); do
    [ ! -s "$recording" ] || return 0
    kill -0 "$recorder" 2>/dev/null || break
    sleep 0.1
  done
  cat "$tmp/recorder.log" >&2
  die "the recording did not begin"
}
# The same bytes twice, and the same decisions as those of the live run.
compare_recording() {
  [ -n "$record" ] || return 0
  end_recorder
  "$swapd" --replay "$recording" --json >"$tmp/replay.1" || die "($1) the replay differs from the live run: swapd --replay $recording"
  "$swapd" --replay "$recording" --json >"$tmp/replay.2"
  cmp "$tmp/replay.1" "$tmp/replay.2" || die "($1) two replays of $recording differ"
  say "($1) out/demo-$1.rec, replayed twice: $("$swapd" --replay "$recording" | tail -n 1)"
}

# --- the stories -------------------------------------------------------------------------------------------------------------

median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# ratios A B: the median of A's to B's, element by element.
ratios() {
  local -n above=$1 below=$2
  local i
  for i in "${!below[@]}"; do awk -v a="${above[$i]}" -v b="${below[$i]}" 'BEGIN { printf "%.4f\n", a / b }'; done | median
}
median_of() { printf '%s\n' "$@" | median; }

# One more run of (a), to look at while it waits.
show_a() {
  "${important[@]}" "${ask[@]}" >/dev/null &
  local waiter=$!
  sleep 0.5
  say "in mid-wait: swapctl why $waiter"
  "$swapctl" --socket "$tmp/swapd.sock" why "$waiter" || true
  mkdir -p "$project/out"
  "$swapctl" --socket "$tmp/swapd.sock" graph --format dot >"$project/out/demo-wait.dot"
  dot -Tsvg -o "$project/out/demo-wait.svg" "$project/out/demo-wait.dot"
  say "the wait graph: out/demo-wait.svg"
  wait "$waiter"
}
show_b() { :; }
show_c() { :; }

# Idle, vanilla and swapd in turn, so that a machine that grows slower meets all three alike.
without_swapd() {
  use vanilla
  "begin_$1"
  "run_$1"
  idle+=("$seconds")
  start_hogs
  "run_$1"
  vanilla+=("$seconds")
  end_hogs
  "end_$1"
}
under_swapd() {
  start_swapd
  [ "$2" != last ] || start_recorder "$1"
  use swapd
  "begin_$1"
  start_hogs
  "run_$1"
  lent+=("$seconds")
  [ "$2" != last ] || "show_$1"
  end_hogs
  "end_$1"
  [ "$2" != last ] || compare_recording "$1"
  end_daemon
}

rows=() kept=yes
for story in $(grep -o . <<<"$stories"); do
  title=title_$story idle=() vanilla=() lent=()
  "prepare_$story"
  for ((i = 1; i <= runs; i++)); do
    without_swapd "$story"
    [ -z "$with_swapd" ] || under_swapd "$story" "$([ "$i" -lt "$runs" ] || echo last)"
  done
  say "($story) idle: ${idle[*]} s"
  say "($story) ten hogs, no swapd: ${vanilla[*]} s"
  row=$(printf '%-34s %8.2f s %8.2f s' "($story) ${!title}" "$(median_of "${idle[@]}")" "$(median_of "${vanilla[@]}")")
  if [ -n "$with_swapd" ]; then
    say "($story) ten hogs, swapd: ${lent[*]} s"
    to_idle=$(ratios lent idle) better=$(ratios vanilla lent)
    row+=$(printf ' %8.2f s %10.2f %13.1f' "$(median_of "${lent[@]}")" "$to_idle" "$better")
    awk -v i="$to_idle" -v v="$better" 'BEGIN { exit !(i <= 1.15 && v >= 5) }' || kept=
  fi
  rows+=("$row")
done

waiter="waiter FIFO 50"
[ -z "$policy" ] || waiter="by policy alone"
printf '\n%-34s %10s %10s' "ten hogs on its CPU, $waiter" idle vanilla
[ -z "$with_swapd" ] || printf ' %10s %10s %13s' swapd swapd/idle vanilla/swapd
printf '\n'
printf '%s\n' "${rows[@]}"
[ -n "$with_swapd" ] || exit 0
if [ -n "$kept" ]; then
  echo "Every story: at most 1.15 x the idle time, and at least 5 times faster than without swapd."
else
  echo "NOT every story came to at most 1.15 x the idle time and at least 5 times faster than without swapd."
  exit 1
fi
