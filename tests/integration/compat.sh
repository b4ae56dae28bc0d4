#!/bin/bash
# swapd-compat in the place of gamemode's daemon and of rtkit: gamemoderun(1) and PipeWire, on buses of the test's own.
#
#   tests/integration/compat.sh [--build DIR]
#
# With the bpf observer, where programs are managed without a change in them. Skips (77) without gamemoderun or PipeWire.
set -euo pipefail
project=$(cd "$(dirname "$0")/../.." && pwd)
. "$project/scripts/common.sh"
. "$project/tests/integration/common.sh"

build=$project/build/dev observer=bpf PATH=$PATH:/usr/games
read_options "build" "$@"
need_root
for program in gamemoderun pipewire dbus-daemon busctl setpriv prlimit; do
  command -v "$program" >/dev/null || { echo "skipped: no $program here"; exit 77; }
done
/usr/bin/python3 -c 'import dbus, gi' 2>/dev/null || { echo "skipped: no python3-dbus or python3-gi here"; exit 77; }

dir=$(mktemp -d /tmp/swapd-compat-XXXXXX)
pids=() front= failed=0 user=1000
compat=$build/src/compat/swapd-compat
trap end_all EXIT
own_buses
lax_polkit

managed() { ctl ps --json | grep -q "\"pid\":$1[,}]"; }
not() { ! "$@"; }
nice_of() { ps -o ni= -p "$1" | tr -d ' '; }
has_nice() { [ "$(nice_of "$1")" = "$2" ]; }
# started_as PID NAME: it has become that program.
started_as() { [ "$(cat "/proc/$1/comm")" = "$2" ]; }
# gamemode METHOD SIGNATURE ARGUMENT…: what it answers.
gamemode() { busctl --address="$DBUS_SESSION_BUS_ADDRESS" call com.feralinteractive.GameMode /com/feralinteractive/GameMode com.feralinteractive.GameMode "$@"; }
answers() {
  local want=$1 said
  shift
  said=$(gamemode "$@" 2>&1) || true
  [ "$said" = "i $want" ] || complain "gamemode $*: $said, and not $want"
}
served() { busctl --address="$1" --list 2>/dev/null | grep -q "^$2 "; }
# fails STATUS WORDS COMMAND…: with that exit status, and one line that has these words.
fails() {
  local want=$1 words=$2 said status=0
  shift 2
  said=$("$@" 2>&1 >/dev/null) || status=$?
  [ "$status" = "$want" ] && [[ $said == *"$words"* ]] && [ "$(wc -l <<<"$said")" = 1 ] || complain "$*: status $status, '$said'"
}

fails 2 "see --help" "$compat"
fails 2 "not in range" "$compat" gamemode --nice 20
fails 2 "not in {system,session}" "$compat" rtkit --bus none
DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nowhere fails 1 "the system bus cannot be reached" "$compat" rtkit

swapd_bus=system start_swapd

# --- gamemode
"$compat" gamemode --nice -4 2>>"$dir/log" &
pids+=($!)
until_true 10 served "$DBUS_SESSION_BUS_ADDRESS" com.feralinteractive.GameMode || die "nobody has gamemode's name: $(tail -3 "$dir/log")"
fails 1 "another program has the name com.feralinteractive.GameMode" "$compat" gamemode
answers 0 QueryStatus i $$

gamemoderun sleep 100 2>>"$dir/log" &
game=$!
pids+=("$game")
until_true 10 managed "$game" || complain "the game of gamemoderun is not managed: $(tail -3 "$dir/log")"
until_true 10 has_nice "$game" -4 || complain "the game has nice $(nice_of "$game"), and not -4"
answers 2 QueryStatus i "$game"
answers 1 QueryStatus i $$
answers -1 RegisterGame i "$game"
[ "$(gamemode ListGames)" = "a(io) 1 $game \"/com/feralinteractive/GameMode/Games/$game\"" ] || complain "games: $(gamemode ListGames)"
exe=$(busctl --address="$DBUS_SESSION_BUS_ADDRESS" get-property com.feralinteractive.GameMode "/com/feralinteractive/GameMode/Games/$game" com.feralinteractive.GameMode.Game Executable)
[ "$exe" = 's "/usr/bin/sleep"' ] || complain "the game's program: $exe"
kill "$game"
wait "$game" 2>/dev/null || true
until_true 10 empty || complain "the game has ended, and is managed still"
answers 0 QueryStatus i $$

# One that unregisters goes on as it was; one that was managed before remains so.
sleep 100 &
game=$!
pids+=("$game")
until_true 5 started_as "$game" sleep
answers 0 RegisterGameByPID ii $$ "$game"
managed "$game" && has_nice "$game" -4 || complain "registered by another: nice $(nice_of "$game")"
answers 0 UnregisterGameByPID ii $$ "$game"
until_true 5 has_nice "$game" 0 || complain "unregistered, and has nice $(nice_of "$game")"
until_true 5 not managed "$game" || complain "unregistered, and is managed still"
ctl enroll "$game"
answers 0 RegisterGameByPID ii $$ "$game"
answers 0 UnregisterGameByPID ii $$ "$game"
managed "$game" || complain "it was managed before it registered, and is not any more"
ctl release "$game"
answers -1 UnregisterGameByPID ii $$ "$game"
answers -1 RegisterGame i 0

# --- rtkit
"$compat" rtkit --class default 2>>"$dir/log" &
pids+=($!)
until_true 10 owned org.freedesktop.RealtimeKit1 || die "nobody has rtkit's name: $(tail -3 "$dir/log")"
setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs pipewire >"$dir/pipewire.log" 2>&1 &
pipewire=$!
pids+=("$pipewire")
has_real_time() { ps -L -o cls= -p "$pipewire" | grep -q RR; }
until_true 10 has_real_time || complain "PipeWire has no real-time thread: $(tail -n 3 "$dir/log"; tail -n 3 "$dir/pipewire.log")"
until_true 10 managed "$pipewire" || complain "PipeWire is not managed"
kill "$pipewire"
wait "$pipewire" 2>/dev/null || true

# asks PROGRAM: python's lines, as the user, with `kit` and `own`, its thread; what it prints.
asks() {
  setpriv --reuid "$user" --regid "$user" --clear-groups prlimit --rttime=200000:200000 /usr/bin/python3 -c "
import dbus, os, resource, sys
bus = dbus.bus.BusConnection(os.environ['DBUS_SYSTEM_BUS_ADDRESS'])
kit = dbus.Interface(bus.get_object('org.freedesktop.RealtimeKit1', '/org/freedesktop/RealtimeKit1'), 'org.freedesktop.RealtimeKit1')
own = os.getpid()
def refused(method, *arguments):
    try:
        getattr(kit, method)(*arguments)
        print('given')
    except dbus.DBusException as e:
        print(e.get_dbus_name().rsplit('.', 1)[1] + ':', e.get_dbus_message())
$1" 2>&1
}
# says WORDS LINES…: the lines, each as it is there.
says() {
  local want=$1 said
  said=$(asks "$2")
  [ "$said" = "$want" ] || complain "rtkit, $2: '$said', and not '$want'"
}
says "2 True 7" "kit.MakeThreadRealtime(own, 7); print(os.sched_getscheduler(0) & ~0x40000000, bool(os.sched_getscheduler(0) & 0x40000000), os.sched_getparam(0).sched_priority)"
says "-11" "kit.MakeThreadHighPriorityWithPID(own, own, -11); print(os.getpriority(os.PRIO_PROCESS, 0))"
says "AccessDenied: real-time priority 21 is not in 1…20" "refused('MakeThreadRealtime', own, 21)"
says "AccessDenied: nice value -16 is not in -15…19" "refused('MakeThreadHighPriority', own, -16)"
says "AccessDenied: the process is another user's" "refused('MakeThreadRealtimeWithPID', $$, $$, 5)"
says "AccessDenied: the thread is none of that process" "refused('MakeThreadRealtimeWithPID', own, $$, 5)"
says "AccessDenied: root alone may do this" "refused('ResetKnown')"
# The bound was set hard, so that a test of a greater one needs root.
unlimited=$(busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" call org.freedesktop.RealtimeKit1 /org/freedesktop/RealtimeKit1 org.freedesktop.RealtimeKit1 MakeThreadRealtime tu 0 5 2>&1 || true)
[[ $unlimited == *"Access denied"* ]] || complain "without RLIMIT_RTTIME: $unlimited"
says "AccessDenied: this user asks too often" "
for _ in range(25):
    try: kit.MakeThreadHighPriority(own, 0)
    except dbus.DBusException: break
refused('MakeThreadHighPriority', own, 0)"

kill "$front"
wait "$front" || true
front=
echo "gamemoderun and PipeWire have what they ask for"
exit "$failed"
