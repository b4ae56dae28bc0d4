#!/bin/bash
# swapd's package on a machine with a real systemd, in a container whose root lies over this machine's.
#
#   tests/integration/boot.sh [--build DIR] [--root DIR] [--keep]
#
# `cpack` makes the packages, and apt installs them there. The service starts; a service that the policy names is managed as it
# starts; reload, restart, a hang that the watchdog ends, a kill, and another version of the package leave who is managed managed; a
# stop gives everything back; a purge leaves nothing.
# --root: over that root instead (of debootstrap, say), which gets what the package depends on from the network. Exit status 77: no
# container can be booted here, and why. Needs root; --keep leaves the container's log.
set -euo pipefail
project=$(cd "$(dirname "$0")/../.." && pwd)
. "$project/scripts/common.sh"
. "$project/tests/integration/common.sh"

build=$project/build/dev keep= lower=/
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=${2:?--build DIR}; shift 2 ;;
    --root) lower=${2:?--root DIR}; shift 2 ;;
    --keep) keep=yes; shift ;;
    --help | -h) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    *) die "unknown option $1; see --help" ;;
  esac
done
need_root
skip() {
  printf 'daemon_boot: Skipped\n%s\n' "$*"
  exit 77
}
[ -z "$(sed -n 's/^SWAPD_SANITIZE:[A-Z]*=//p' "$build/CMakeCache.txt")" ] || skip "a sanitizer's build is not what is installed"
command -v dpkg-shlibdeps >/dev/null || skip "dpkg-shlibdeps is missing (Debian package dpkg-dev)"
command -v systemd-nspawn >/dev/null || skip "systemd-nspawn is missing (Debian package systemd-container)"

dir=$(mktemp -d /tmp/swapd-boot-XXXXXX)
group=swapd-boot-$$
nspawn= leader= failed=0
find_leader() { leader=$(cat "/proc/$nspawn/task/$nspawn/children" 2>/dev/null | awk '{ print $1 }') && [ -n "$leader" ]; }
cleanup() {
  { [ -n "$nspawn" ] && find_leader && kill -RTMIN+4 "$leader" 2>/dev/null; } || true
  local i
  for ((i = 0; i < 100; i++)); do { [ -n "$nspawn" ] && kill -0 "$nspawn" 2>/dev/null; } || break; sleep 0.1; done
  [ -z "$nspawn" ] || kill -9 "$nspawn" 2>/dev/null || true
  [ -z "$nspawn" ] || wait "$nspawn" 2>/dev/null || true
  # Back to where we came from, or the groups cannot go.
  for hierarchy in "${!home[@]}"; do
    echo $$ >"$hierarchy${home[$hierarchy]}/cgroup.procs" 2>/dev/null || true
    [ ! -d "$hierarchy/$group" ] || find "$hierarchy/$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
  ! mountpoint -q "$dir/root" || umount "$dir/root"
  ! mountpoint -q "$dir/over" || umount "$dir/over"
  [ -n "$keep" ] && echo "$dir/log" || rm -rf "$dir"
}
declare -A home=()
trap cleanup EXIT

# Into groups of our own, below which systemd makes its own.
for hierarchy in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
  [ -f "$hierarchy/cgroup.procs" ] || continue
  case $hierarchy in
    */systemd) line=$(sed -n 's/^[0-9]*:name=systemd://p' /proc/self/cgroup) ;;
    *) line=$(sed -n 's/^0:://p' /proc/self/cgroup) ;;
  esac
  mkdir "$hierarchy/$group" 2>/dev/null || continue
  home[$hierarchy]=$line
  echo $$ >"$hierarchy/$group/cgroup.procs" || skip "no cgroup of one's own in $hierarchy"
done

# The packages, and a target that has little but a message bus.
(cd "$build" && cpack -G DEB -B "$dir/packages") >"$dir/cpack.log" 2>&1 || { cat "$dir/cpack.log" >&2; die "cpack makes no packages"; }
mkdir "$dir/over" "$dir/root"
mount -t tmpfs tmpfs "$dir/over" || skip "no tmpfs can be mounted"
mkdir "$dir/over/upper" "$dir/over/work"
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$dir/over/upper,workdir=$dir/over/work" "$dir/root" || skip "no overlay can be mounted"
root=$dir/root
mv "$dir"/packages/*.deb "$root/root/"
rm -f "$root/usr/sbin/policy-rc.d"
if [ "$lower" != / ]; then
  cp /etc/resolv.conf "$root/etc/"
  chroot "$root" sh -c 'apt-get -q update && apt-get -q -y --no-install-recommends --download-only install /root/swapd_*.deb' >"$dir/apt.log" 2>&1 ||
    { cat "$dir/apt.log" >&2; die "what the package depends on cannot be fetched"; }
fi
mkdir -p "$root/etc/systemd/system/swapd.service.d" "$root/etc/swapd/policies.d"
rm -f "$root/etc/swapd/swapd.toml"
cat >"$root/etc/swapd/policies.d/site.toml" <<'END'
[class.site]
[match.job]
unit = "swapd-t-job.service"
class = "site"
nice = -5
END
printf '[Service]\nWatchdogSec=2s\n' >"$root/etc/systemd/system/swapd.service.d/test.conf"
printf '[Unit]\nRequires=basic.target dbus.socket\nAfter=basic.target\nAllowIsolate=yes\n' >"$root/etc/systemd/system/swapd-t.target"
printf '[Service]\nExecStart=/bin/sleep 1000\n' >"$root/etc/systemd/system/swapd-t-job.service"
ln -sf swapd-t.target "$root/etc/systemd/system/default.target"
: >"$root/etc/machine-id"

# Its own filter would forbid BPF and perf, and keep swapd from attaching to anything that runs in it.
SYSTEMD_SECCOMP=0 systemd-nspawn --quiet --register=no --keep-unit --console=pipe --private-network --capability=all -D "$root" --boot \
  >"$dir/log" 2>&1 </dev/null &
nspawn=$!
inside() { nsenter -t "$leader" -m -u -i -n -p -C -- "$@"; }
# Its first child is not yet the container's PID 1, but makes that and ends.
booted() { find_leader && inside systemctl is-active --quiet basic.target; }
until_true 20 find_leader || { cat "$dir/log" >&2; skip "systemd-nspawn boots nothing here"; }
until_true 60 booted || {
  tail -20 "$dir/log" >&2
  timeout 5 nsenter -t "$leader" -m -u -i -n -p -C -- sh -c 'ps ax; systemctl --no-pager list-jobs' >&2 || true
  tr '\0' ' ' <"/proc/$leader/cmdline" >&2 || true
  skip "no systemd boots in a container here"
}

# --- what must hold ------------------------------------------------------------------------------------------------------------

must() {
  local what=$1 seconds=$2
  shift 2
  if until_true "$seconds" "$@"; then
    echo "ok: $what"
  else
    echo "not so: $what" >&2
    failed=1
  fi
}
active() { inside systemctl is-active --quiet "$1"; }
main_pid() { inside systemctl show -p MainPID --value "$1"; }
# managed PID CLASS NICE
managed() { inside swapctl ps | awk -v pid="$1" -v class="$2" -v nice="$3" '$1 == pid && $4 == class && / nice '"$3"' / { found = 1 } END { exit !found }'; }
another() { local now; now=$(main_pid swapd) && [ "$now" != 0 ] && [ "$now" != "$1" ] && active swapd; }

ours() {
  inside find /etc /lib/systemd /run/swapd /usr /var/lib -xdev -name '*swapd*' ! -path '*swapd-t*' 2>/dev/null | sort || true
  inside getent group swapd || true
}
before_installing=$(ours)
inside sh -c 'DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends /root/swapd_*.deb' >"$dir/apt.log" 2>&1 ||
  { cat "$dir/apt.log" >&2; die "apt does not install the package"; }
must "the service is active once installed" 30 active swapd
must "and will be after a boot" 5 inside systemctl is-enabled --quiet swapd
if [ "$failed" != 0 ]; then
  inside systemctl status --no-pager -n 30 swapd >&2 || true
  exit 1
fi
verified() { [ -z "$(inside systemd-analyze verify swapd.service swapd-guard.socket swapd-attach.socket 2>&1)" ]; }
must "systemd-analyze verify finds nothing" 10 verified
# "→ Overall exposure level for swapd.service: 4.2 OK"
exposure() { inside systemd-analyze security --no-pager "${1:-swapd.service}" | sed -n 's/.*Overall exposure level[^:]*: \([0-9.]*\).*/\1/p'; }
not_exposed() { exposure | awk '{ found = $1 <= 5.0 } END { exit !found }'; }
must "systemd-analyze security says 5.0 or less ($(exposure))" 10 not_exposed
must "swapctl talks to it" 10 inside swapctl status
# As a unit of its own, and of what its unit allows it lacks nothing.
guard_units() { inside systemctl list-units --no-legend --plain --state=running 'swapd-guard@*' | awk '{ print $1 }'; }
guard_pid() { main_pid "$(guard_units | head -1)"; }
guard_is_a_unit() { [ "$(guard_units | wc -l)" = 1 ] && ! inside swapctl status | grep -q 'no unit of its own'; }
must "the guard is a unit of its own" 10 guard_is_a_unit
guard_not_exposed() { exposure "$(guard_units)" | awk '{ found = $1 <= 2.0 } END { exit !found }'; }
must "systemd-analyze security says 2.0 or less of it ($(exposure "$(guard_units)"))" 10 guard_not_exposed
memory_locked() { inside awk '/^VmLck:/ { found = $2 > 0 } END { exit !found }' "/proc/$(guard_pid)/status"; }
must "its memory is locked" 10 memory_locked
on_the_bus() { inside busctl --system call org.swapd1 /org/swapd1 org.swapd1.Manager Status | grep -q managed_processes; }
must "it answers on the system bus" 10 on_the_bus
# The interface on the bus is the one in the package's XML, comments and white space aside.
same_interface() {
  inside python3 - <<'END'
import re, subprocess
from xml.etree import ElementTree
def shape(text, name):
  interface = next(i for i in ElementTree.fromstring(re.sub(r'<!DOCTYPE.*?>', '', text, flags=re.S)).iter('interface')
                   if i.get('name') == name)
  for e in interface.iter(): e.text = e.tail = None
  return ElementTree.tostring(interface)
def there(path):
  return subprocess.run(['busctl', '--system', 'introspect', '--xml-interface', 'org.swapd1', path],
                        check=True, capture_output=True, text=True).stdout
documented = open('/usr/share/dbus-1/interfaces/org.swapd1.xml').read()
for path, name in ('/org/swapd1', 'Manager'), ('/org/swapd1/class/default', 'Class'):
  assert shape(there(path), 'org.swapd1.' + name) == shape(documented, 'org.swapd1.' + name), name
END
}
must "the interface is the documented one" 10 same_interface
inside systemctl start swapd-t-job
job=$(main_pid swapd-t-job)
must "a service that the policy names is managed, in its class" 10 managed "$job" site -5
on_the_tree() { inside busctl --system --list tree org.swapd1 | grep -qx "/org/swapd1/process/$job"; }
must "and an object on the bus" 10 on_the_tree

# As swapd.conf(5) has it: a slice, a drop-in and a rule, and the service's unit stays as it is.
printf '[Service]\nExecStart=/bin/sleep 1003\n' >"$root/etc/systemd/system/swapd-t-other.service"
inside sh -c 'cd /usr/share/doc/swapd/examples && cp swapd-managed.slice /etc/systemd/system/ &&
  install -D managed-service.conf /etc/systemd/system/swapd-t-other.service.d/swapd.conf && cp managed-slice.toml /etc/swapd/policies.d/ &&
  systemctl daemon-reload && systemctl start swapd-t-other && swapctl restart'
must "a service in the slice of the examples is managed" 10 managed "$(main_pid swapd-t-other)" default 0
inside sh -c 'systemctl stop swapd-t-other && rm /etc/swapd/policies.d/managed-slice.toml /etc/systemd/system/swapd-managed.slice && swapctl restart'

inside sh -c 'exec setsid swapctl run --nice -3 -- sleep 1001 >/dev/null 2>&1 </dev/null &'
sleeper() { inside pgrep -xf 'sleep 1001'; }
must "a program is run under it" 10 sleeper
other=$(sleeper || true)
all_managed() { managed "$job" site -5 && managed "$other" default -3; }

# Who is lent what, and who is refused what, stands in the journal, with fields.
cp "$(test_program pair)" "$root/root/pair"
inside sh -c 'exec setsid swapctl run -- /root/pair server /run/swapd-t.sock /run/swapd-t.flag >/dev/null 2>&1 </dev/null &'
until_true 10 inside test -S /run/swapd-t.sock
inside sh -c 'exec setsid swapctl run --nice -10 -- /root/pair client /run/swapd-t.sock >/run/swapd-t.client 2>&1 </dev/null &'
entry() { inside journalctl --quiet "$@" | grep -q .; }
server=$(inside pgrep -xf '/root/pair server .*' || true)
must "the journal tells of a donation" 10 entry SWAPD_PID="$server" SWAPD_LENT="other -10" MESSAGE_ID=e5d1acba7f204a77a7f69ab13c8cba33
explained() { inside journalctl -x --quiet SWAPD_PID="$server" | grep -q 'runs with other -10 until it has delivered'; }
must "and explains it" 10 explained
inside touch /run/swapd-t.flag
inside setpriv --reuid 65534 --clear-groups busctl --system call org.swapd1 /org/swapd1 org.swapd1.Manager Release u "$job" 2>/dev/null &&
  { echo "not so: another user's process is not released" >&2; failed=1; }
must "and of a refusal" 10 entry SWAPD_UID=65534 SWAPD_ACTION=release SWAPD_PID="$job"


# What polkit grants, swapd does; and nothing else.
inside sh -c 'exec setsid swapctl run -- sleep 1002 >/dev/null 2>&1 </dev/null &'
third() { inside pgrep -xf 'sleep 1002'; }
until_true 10 third
as_nobody() { inside setpriv --reuid 65534 --clear-groups busctl --system call org.swapd1 /org/swapd1 org.swapd1.Manager "$@"; }
is_there() { inside swapctl why "$(third)"; }
must "a third program is managed" 10 is_there
inside sh -c 'exec setsid setpriv --reuid 65534 --clear-groups sleep 1005 >/dev/null 2>&1 </dev/null &'
own_program() { inside pgrep -u 65534 -xf 'sleep 1005'; }
until_true 10 own_program
must "a user has a program of his own managed" 10 as_nobody Enroll ubsb "$(own_program)" false "" true
as_nobody Processes 2>/dev/null && { echo "not so: who is on no seat sees nothing" >&2; failed=1; }
inside gpasswd -a nobody swapd >/dev/null
must "a member of the group swapd sees it, without seat or password" 10 as_nobody Processes
refused() { [[ $(as_nobody "$@" 2>&1 || true) =~ only\ root\ may|polkit ]]; }
must "and administers nothing" 5 refused Pause
inside gpasswd -d nobody swapd >/dev/null
mkdir -p "$root/etc/polkit-1/rules.d"
inside sh -c 'cat >/etc/polkit-1/rules.d/50-swapd-t.rules' <<'END'
polkit.addRule(function(action, subject) {
  if (action.id == "org.swapd1.manage-others" && subject.user == "nobody") return polkit.Result.YES;
});
END
must "a rule of polkit's lets another user release it" 20 as_nobody Release u "$(third)"
must "and it is managed no more" 10 inside sh -c "! swapctl why $(third)"
as_nobody Pause 2>/dev/null && { echo "not so: what it does not grant is refused" >&2; failed=1; }

# All that follows under load, of bounded time.
inside sh -c 'for i in 1 2 3 4; do setsid timeout 120 sh -c "while :; do :; done" >/dev/null 2>&1 </dev/null & done'
before=$(main_pid swapd)
inside systemctl reload swapd
must "a reload keeps process and members" 10 all_managed
[ "$(main_pid swapd)" = "$before" ] || { echo "not so: the same process after a reload" >&2; failed=1; }
inside systemctl restart swapd
must "a restart is another process" 10 another "$before"
must "a restart keeps members" 10 all_managed

before=$(main_pid swapd)
inside kill -STOP "$before"
must "the watchdog ends one that hangs, and another starts" 30 another "$before"
must "a hang keeps members" 10 all_managed
before=$(main_pid swapd)
inside kill -KILL "$before"
must "one that is killed is started again" 10 another "$before"
must "a kill keeps members" 10 all_managed

before=$(main_pid swapd)
inside sh -c 'DEBIAN_FRONTEND=noninteractive apt-get install -y --reinstall /root/swapd_*.deb' >"$dir/apt.log" 2>&1 || { cat "$dir/apt.log" >&2; failed=1; }
must "an upgrade keeps process and members" 10 all_managed
[ "$(main_pid swapd)" = "$before" ] || { echo "not so: the same process after an upgrade" >&2; failed=1; }

# What runs already is attached to by a unit of its own: swapd has a seccomp filter, and could not make the program's not see it.
mkdir -p "$root/etc/systemd/system/swapd-t-filtered.service.d"
printf '[Service]\nExecStart=/bin/sh -c "while sleep 0.1; do date +%%%%s%%%%N >/run/swapd-t.beat; done"\nSystemCallFilter=~seccomp prctl\nSystemCallErrorNumber=EPERM\n' >"$root/etc/systemd/system/swapd-t-filtered.service"
printf '[Service]\nExecStart=\nExecStart=/usr/sbin/swapd --foreground --bus system --guard-socket /run/swapd/guard.sock --attach-socket /run/swapd/attach.sock --observe seccomp\n' \
  >"$root/etc/systemd/system/swapd.service.d/seccomp.conf"
inside sh -c 'systemctl daemon-reload && systemctl restart swapd && systemctl start swapd-t-filtered'
filtered=$(main_pid swapd-t-filtered)
filters() { inside sed -n 's/^Seccomp_filters:[[:space:]]*//p' "/proc/$filtered/status"; }
own=$(filters)
inside swapctl enroll "$filtered" || failed=1
attached() { managed "$filtered" default 0; }
guard_is_there() { [ "$(guard_units | wc -l)" -ge 1 ]; }
must "a program with filters of its own is attached to" 10 attached
[ "$(filters)" = $((own + 1)) ] || { echo "not so: it has $own filters and ours, not $(filters)" >&2; failed=1; }
must "whose guard is a unit" 10 guard_is_there
filter_of() { inside awk '$1 == "Seccomp:" { print $2 }' "/proc/$(main_pid swapd)/status"; }
[ "$(filter_of)" = 2 ] || { echo "not so: swapd has a seccomp filter of its own" >&2; failed=1; }

inside systemctl stop swapd
must "a stop ends no program" 5 inside kill -0 "$job" "$other"
# It is under our filter: its guard, a unit, answers for it.
must "nor the guard of one that needs it" 5 guard_is_there
beat=$(cat "$root/run/swapd-t.beat" 2>/dev/null || inside cat /run/swapd-t.beat)
goes_on() { [ "$(inside cat /run/swapd-t.beat)" != "$beat" ]; }
must "which answers its calls" 5 goes_on
in_no_way_of_a_shutdown() { [ "$(inside systemctl show -p Slice --value "$(guard_units | head -1)")" = system.slice ] &&
  ! inside systemctl show -p Conflicts --value "$(guard_units | head -1)" | grep -q shutdown; }
must "and is not stopped at a shutdown" 5 in_no_way_of_a_shutdown
must "nobody answers any more" 5 inside sh -c '! swapctl status'
inside sh -c 'DEBIAN_FRONTEND=noninteractive apt-get purge -y swapd' >"$dir/apt.log" 2>&1 || { cat "$dir/apt.log" >&2; failed=1; }
must "a purge ends no program" 5 inside kill -0 "$job" "$other"
if [ "$(ours)" = "$before_installing" ]; then
  echo "ok: a purge leaves what was there before"
else
  echo "not so: a purge leaves what was there before:" >&2
  diff <(echo "$before_installing") <(ours) >&2 || true
  failed=1
fi
[ -z "$failed" ] || [ "$failed" = 0 ] || inside journalctl -u swapd --no-pager -n 40 >&2 || true
exit "$failed"
