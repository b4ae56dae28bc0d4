#!/bin/bash
# The Debian packages that cpack makes: lintian finds no error in them, and what a user looks for is there.
#
#   tests/integration/package.sh [--build DIR]
#
# tests/integration/boot.sh installs and purges them. Exit status 77: what makes or judges packages is missing.
set -euo pipefail
project=$(cd "$(dirname "$0")/../.." && pwd)
. "$project/scripts/common.sh"
. "$project/tests/integration/common.sh"

build=$project/build/dev failed=0
read_options "build" "$@"
for program in dpkg-shlibdeps lintian; do
  command -v "$program" >/dev/null || { printf 'package: Skipped\n%s is missing\n' "$program"; exit 77; }
done
dir=$(mktemp -d /tmp/swapd-package-XXXXXX)
trap 'rm -rf "$dir"' EXIT

(cd "$build" && cpack -G DEB -B "$dir") >"$dir/log" 2>&1 || { cat "$dir/log" >&2; die "cpack makes no packages"; }
for package in "$dir"/*.deb; do
  errors=$(lintian --allow-root --fail-on error "$package" 2>&1 | grep '^E:' || true)
  [ -z "$errors" ] || { printf 'not so: lintian finds no error in %s:\n%s\n' "$(basename "$package")" "$errors" >&2; failed=1; }
done
dpkg-deb -c "$dir"/swapd_*.deb | awk '{ print $NF }' >"$dir/files"
for file in usr/sbin/swapd usr/bin/swapctl usr/libexec/swapd/swapd-guard usr/libexec/swapd/swapd-attach etc/swapd/swapd.toml \
  usr/lib/swapd/policies.d/10-protected.toml usr/share/swapd/policies/desktop.toml usr/share/swapd/dashboards/swapd.json usr/share/swapd/oci/unconfined-crun.json usr/share/swapd/oci/unconfined-runc.json usr/lib/systemd/system/swapd.service \
  usr/lib/systemd/catalog/swapd.catalog usr/lib/sysusers.d/swapd.conf usr/lib/tmpfiles.d/swapd.conf usr/share/dbus-1/system.d/org.swapd1.conf \
  usr/share/polkit-1/actions/org.swapd1.policy usr/share/polkit-1/rules.d/swapd.rules usr/share/man/man1/swapctl.1.gz usr/share/man/man5/swapd-policy.5.gz \
  usr/share/man/man5/org.swapd1.5.gz usr/share/man/man5/swapd.conf.5.gz usr/share/man/man8/swapd.8.gz usr/share/bash-completion/completions/swapctl.bash \
  usr/share/zsh/vendor-completions/_swapctl usr/share/fish/vendor_completions.d/swapctl.fish; do
  grep -qx "./$file" "$dir/files" || { echo "not so: the package has $file" >&2; failed=1; }
done
dpkg-deb -c "$dir"/swapd-compat_*.deb | awk '{ print $NF }' >"$dir/files"
for file in usr/libexec/swapd/swapd-compat usr/lib/systemd/system/swapd-rtkit.service usr/lib/systemd/user/swapd-gamemode.service \
  usr/share/dbus-1/system-services/org.freedesktop.RealtimeKit1.service usr/share/dbus-1/services/com.feralinteractive.GameMode.service \
  usr/share/dbus-1/system.d/org.swapd1.compat.conf usr/share/polkit-1/actions/org.swapd1.compat.policy usr/share/man/man8/swapd-compat.8.gz; do
  grep -qx "./$file" "$dir/files" || { echo "not so: the package for gamemode and rtkit has $file" >&2; failed=1; }
done
[ "$(dpkg-deb -f "$dir"/swapd-compat_*.deb Conflicts)" = "rtkit, gamemode-daemon" ] || { echo "not so: swapd-compat is instead of rtkit and gamemode-daemon" >&2; failed=1; }
[ "$(dpkg-deb --ctrl-tarfile "$dir"/swapd_*.deb | tar xO ./conffiles)" = /etc/swapd/swapd.toml ] || { echo "not so: the administrator's file is a conffile" >&2; failed=1; }
for needed in libsystemd0 libseccomp2 libbpf1; do
  dpkg-deb -f "$dir"/swapd_*.deb Depends | grep -q "$needed" || { echo "not so: the package depends on $needed" >&2; failed=1; }
done
# Programs find what they need where they are installed.
dpkg-deb --fsys-tarfile "$dir"/swapd_*.deb | tar xO ./usr/lib/systemd/system/swapd.service >"$dir/service"
grep -q '^ExecStart=/usr/sbin/swapd ' "$dir/service" || { echo "not so: the service starts /usr/sbin/swapd" >&2; failed=1; }
[ "$failed" != 0 ] || echo "ok: $(cd "$dir" && echo *.deb)"
exit "$failed"
