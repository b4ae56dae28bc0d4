#!/bin/bash
# Boots Debian's kernels in a virtual machine, with swapd's package on a small Debian there, and tells what works on each.
#
#   scripts/kernels.sh [--build DIR] [--dir DIR] [--keep] [--minutes N] [--cpu MODEL] [--no-install] [VERSION…]
#
# VERSION: 6.1 (bookworm's) and 6.12 (bookworm-backports'), both where none is named. PID 1 there is systemd, and the cgroups are v2.
# The service, both observers, a limit, the freezer, a group's weight and the core of the integration tests (tests/kernels/guest.sh).
# Prints a table as Markdown, and the failed tests below it; exit status 0 where nothing failed.
#
# The processor is emulated (hardware virtualisation need not be there), some twenty times slower: what is tested is what works, and
# times are but compared with each other. --dir (/var/tmp/swapd-kernels) holds the root and the images, 5 GB; it is removed
# at the end unless --keep is given, which spares the next run the root. Needs root and the network (debootstrap from the mirror that apt
# uses); a quarter of an hour for each kernel once swapd is built.
set -euo pipefail
. "$(dirname "$0")/common.sh"

build=$project/build/dev dir=/var/tmp/swapd-kernels keep= minutes=45 cpu=max install=yes versions=() build_given=
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$(realpath "${2:?--build DIR}") build_given=yes; shift 2 ;;
    --dir) dir=${2:?--dir DIR}; shift 2 ;;
    --keep) keep=yes; shift ;;
    --minutes) minutes=${2:?--minutes N}; shift 2 ;;
    --cpu) cpu=${2:?--cpu MODEL}; shift 2 ;;
    --no-install) install=; shift ;;
    --help | -h) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    -*) die "unknown option $1; see --help" ;;
    *) versions+=("$1"); shift ;;
  esac
done
[ ${#versions[@]} -gt 0 ] || versions=(6.1 6.12)
need_root
[ -z "$install" ] || install_packages build test kernels
[ -n "$build_given" ] || build_preset dev

suite=bookworm root=$dir/root
mkdir -p "$dir"
qemu=
cleanup() {
  [ -z "$qemu" ] || kill "$qemu" 2>/dev/null || true
  rm -f "$dir"/*.img
  [ -n "$keep" ] || rm -rf --one-file-system "$dir"
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# --- the root ------------------------------------------------------------------------------------------------------------------

in_root() { DEBIAN_FRONTEND=noninteractive LC_ALL=C chroot "$root" "$@" </dev/null; }
logged() { "$@" >>"$dir/log" 2>&1 || { tail -20 "$dir/log" >&2; die "failed: $*"; }; }

if [ ! -e "$root/made" ]; then
  mirror=$(apt-get indextargets --format '$(REPO_URI)' "Codename: $suite" 'Identifier: Packages' 'Component: main' | head -1)
  [ -n "$mirror" ] || mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' | head -1)
  [ -n "$mirror" ] || die "apt knows no mirror of Debian; run apt-get update"
  say "making a root of Debian $suite in $root"
  rm -rf --one-file-system "$root"
  logged debootstrap --variant=minbase \
    --include=systemd,systemd-sysv,dbus,polkitd,libpam-systemd,procps,iproute2,kmod,initramfs-tools,liburing2 "$suite" "$root" "$mirror"
  echo "deb $mirror $suite-backports main" >"$root/etc/apt/sources.list.d/backports.list"
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"  # nothing starts in the root as it is made
  chmod 755 "$root/usr/sbin/policy-rc.d"
  # No more than what finds the disk: to make and to unpack an initrd of everything takes minutes there.
  printf 'MODULES=list\nCOMPRESS=gzip\nBUSYBOX=n\n' >"$root/etc/initramfs-tools/conf.d/swapd"
  printf 'virtio_pci\nvirtio_blk\next4\n' >>"$root/etc/initramfs-tools/modules"
  touch "$root/made"
fi
cp /etc/resolv.conf "$root/etc/resolv.conf"

# image_of VERSION: the newest kernel of that line in the root.
image_of() { find "$root/boot" -name "vmlinuz-$1.*" | sort -V | tail -1; }
for version in $(printf '%s\n' "${versions[@]}" | sort -V); do
  [ -z "$(image_of "$version")" ] || continue
  say "installing Linux $version"
  logged in_root apt-get -q update
  found=$(in_root apt-cache madison linux-image-amd64 | awk -v line="$version." 'index($3, line) == 1 { print $3; exit }')
  [ -n "$found" ] || die "Debian $suite and its backports have no Linux $version"
  logged in_root apt-get -q -y --no-install-recommends --allow-downgrades install "linux-image-amd64=$found"
done

say "installing swapd's package"
rm -rf "$dir/packages" "$root/root/packages"
(cd "$build" && cpack -G DEB -B "$dir/packages") >>"$dir/log" 2>&1 || { tail -20 "$dir/log" >&2; die "cpack makes no packages"; }
mkdir -p "$root/root/packages"
cp "$dir"/packages/*.deb "$root/root/packages/"
in_root sh -c 'apt-get -q -y --no-install-recommends --reinstall --allow-downgrades install /root/packages/swapd*.deb' >>"$dir/log" 2>&1 || {
  logged in_root apt-get -q update
  logged in_root sh -c 'apt-get -q -y --no-install-recommends --reinstall --allow-downgrades install /root/packages/swapd*.deb'
}
rm -rf "$root/root/packages"
in_root apt-get clean

cat >"$root/etc/systemd/system/swapd-kernels.service" <<END
[Unit]
After=swapd.service dbus.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'mkdir -p /payload && mount /dev/vdb /payload && exec bash /payload/guest.sh >/payload/out/log 2>&1'
ExecStopPost=/bin/systemctl --no-block poweroff
END
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -sf ../swapd-kernels.service "$root/etc/systemd/system/multi-user.target.wants/"
: >"$root/etc/machine-id"
rm -f "$root/etc/fstab"

# --- the tests, at the paths that they were built with -----------------------------------------------------------------------------

payload=$dir/payload
rm -rf "$payload"
mkdir -p "$payload/out" "$payload/tree"
cp "$project/tests/kernels/guest.sh" "$payload/"
printf 'project=%q build=%q\n' "$project" "$build" >"$payload/where"
(cd "$project" && cp -a --parents CMakeLists.txt policies systemd tests/programs "$payload/tree/")
# Programs, and no object files; what a test has no need of does no harm.
(cd "$project" && find "${build#"$project"/}" -type f -perm -u+x ! -name '*.so*' ! -path '*/CMakeFiles/*' ! -path '*/tests/unit/*' -print0 |
  xargs -0 cp --parents -t "$payload/tree")
find "$payload/tree" -type f -perm -u+x -exec strip --strip-debug {} + 2>/dev/null || true

# --- a boot for each ----------------------------------------------------------------------------------------------------------------

# mke2fs gives what it copies the owners that it has, and needs no mount.
make_image() { # NAME SIZE FOLDER
  rm -f "$dir/$1.img"
  truncate -s "$2" "$dir/$1.img"
  logged mke2fs -q -t ext4 -d "$3" "$dir/$1.img"
}
make_image root 4G "$root"

# The disks are there without udev, which takes the longest of all that a machine does that is emulated as it boots.
masked=
for unit in systemd-udevd.service systemd-udevd-control.socket systemd-udevd-kernel.socket systemd-udev-trigger.service \
  getty@tty1.service serial-getty@ttyS0.service apt-daily.timer apt-daily-upgrade.timer e2scrub_reap.service; do
  masked+=" systemd.mask=$unit"
done

# nohz=off: an emulated processor that idles misses an interrupt of another one now and then, and would sleep for ever.
for version in "${versions[@]}"; do
  say "booting Linux $version"
  kernel=$(image_of "$version")
  rm -rf "$dir/out-$version"
  mkdir "$dir/out-$version"
  make_image payload 1G "$payload"
  timeout $((minutes * 60)) qemu-system-x86_64 -accel tcg,thread=single -cpu "$cpu" -smp 2 -m 2048 -nographic -no-reboot -net none \
    -kernel "$kernel" -initrd "$root/boot/initrd.img-${kernel##*/vmlinuz-}" -append "console=ttyS0 root=/dev/vda rw panic=-1 mitigations=off nohz=off$masked" \
    -drive "file=$dir/root.img,if=virtio,format=raw,snapshot=on" -drive "file=$dir/payload.img,if=virtio,format=raw" \
    </dev/null >"$dir/out-$version/console" 2>&1 &
  qemu=$!
  wait "$qemu" || true
  qemu=
  e2fsck -fy "$dir/payload.img" >/dev/null 2>&1 || true
  debugfs -R "rdump /out $dir/out-$version" "$dir/payload.img" >/dev/null 2>&1 || true
  [ -s "$dir/out-$version/out/results" ] || { tail -20 "$dir/out-$version/console" >&2; say "Linux $version told nothing"; }
done

# --- the table ------------------------------------------------------------------------------------------------------------------------

failed=0
value() { awk -F '\t' -v key="$2" '$1 == key { v = $2 } END { print v == "" ? "–" : v }' "$dir/out-$1/out/results" 2>/dev/null || echo –; }
row() { # LABEL KEY
  printf '| %s |' "$1"
  local version
  for version in "${versions[@]}"; do printf ' %s |' "$(value "$version" "$2")"; done
  printf '\n'
}
printf '| |'
for version in "${versions[@]}"; do printf ' Linux %s |' "$version"; done
printf '\n|---|'
for version in "${versions[@]}"; do printf -- '---|'; done
printf '\n'
row 'kernel' kernel
row 'PID 1, cgroups' surroundings
row 'the service, as installed' service
row 'its observer' observer
row 'what `status` says is missing' lacks
row 'bpf: a client at FIFO 50 and its server, idle / beside 4 hogs / with swapd' ratio-bpf
row 'seccomp: the same' ratio-seccomp
row 'bpf: a writer in a class of 2 MiB/s' limit-bpf
row 'seccomp: the same' limit-seccomp
row 'weight of the provider'"'"'s group (`cpu.weight`): before / lent / after' weight
row 'freezer (`cgroup.freeze`)' freezer
row 'core tests' tests
row 'left out: tests of times' unmeasured
for version in "${versions[@]}"; do
  [ "$(value "$version" finished)" = yes ] || { printf '\nLinux %s: not finished\n' "$version"; failed=1; }
  bad=$(awk -F '\t' '$1 == "failed" { print "- " $2 }' "$dir/out-$version/out/results" 2>/dev/null || true)
  [ -z "$bad" ] || { printf '\nLinux %s, failed:\n%s\n' "$version" "$bad"; failed=1; }
done
exit "$failed"
