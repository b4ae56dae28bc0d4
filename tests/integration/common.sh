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
# start_swapd [OPTION…]. front: the process that was started; swapd: the daemon. swapd_bus: the message bus it is on; none.
start_swapd() {
  "$build/daemon/swapd" --foreground --bus "${swapd_bus:-none}" --observe "$observer" --socket "$dir/s" --state-dir "$dir/state" "$@" 2>>"$dir/log" &
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
# What follows is for a caller with pids, an array of what it ends.
# bus NAME: a message bus that allows everything.
bus() {
  cat >"$dir/$1.conf" <<X
<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>$1</type><listen>unix:path=$dir/$1</listen><auth>EXTERNAL</auth><policy context="default">
<allow user="*"/><allow own="*"/><allow send_destination="*"/><allow send_requested_reply="true" send_type="method_return"/>
<allow send_requested_reply="true" send_type="error"/><allow receive_type="method_call"/><allow receive_type="method_return"/>
<allow receive_type="error"/><allow receive_type="signal"/></policy></busconfig>
X
  dbus-daemon --config-file="$dir/$1.conf" --nofork --nopidfile 2>>"$dir/log" &
  pids+=($!)
  until_true 10 test -S "$dir/$1" || die "no $1 bus"
}
# Both, in dir and in the environment, and a home and runtime directory there that belongs to `user`.
own_buses() {
  chmod 755 "$dir"
  bus system
  bus session
  export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$dir/system DBUS_SESSION_BUS_ADDRESS=unix:path=$dir/session XDG_RUNTIME_DIR=$dir/run HOME=$dir/run
  mkdir -m 700 "$dir/run"
  chown "$user" "$dir/run"
}
# For a trap: ends swapd (front) and all of pids, and removes dir.
end_all() {
  [ -z "$front" ] || kill "$front" 2>/dev/null || true
  [ ${#pids[@]} -eq 0 ] || kill "${pids[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$dir"
}
# owned NAME: somebody has it on the system bus.
owned() { dbus-send --system --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner "string:$1" | grep -q true; }
# A polkit on the system bus that allows everything.
lax_polkit() {
  /usr/bin/python3 - 2>>"$dir/log" <<'X' &
import os
import dbus
import dbus.service
from dbus.mainloop.glib import DBusGMainLoop
from gi.repository import GLib

DBusGMainLoop(set_as_default=True)
bus = dbus.bus.BusConnection(os.environ["DBUS_SYSTEM_BUS_ADDRESS"])


class Authority(dbus.service.Object):
    @dbus.service.method("org.freedesktop.PolicyKit1.Authority", in_signature="(sa{sv})sa{ss}us", out_signature="(bba{ss})")
    def CheckAuthorization(self, subject, action, details, flags, cancel):
        return (True, False, dbus.Dictionary({}, signature="ss"))


name = dbus.service.BusName("org.freedesktop.PolicyKit1", bus)
Authority(bus, "/org/freedesktop/PolicyKit1/Authority")
GLib.MainLoop().run()
X
  pids+=($!)
  until_true 10 owned org.freedesktop.PolicyKit1 || die "no policy kit on the system bus: $(tail -3 "$dir/log")"
}
