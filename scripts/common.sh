# What the scripts share. Sourced by bash; the caller has set -euo pipefail.
# shellcheck shell=bash

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '== %s\n' "$*" >&2; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

need_root() { [ "$(id -u)" -eq 0 ] || die "must run as root: it installs packages, uses real-time classes and traps system calls"; }

# packages_of SECTION…: the packages of these sections of packages.txt.
packages_of() {
  awk -v wanted=" $* " '
    /^# [a-z]+:/ { section = $2; sub(/:$/, "", section); next }
    /^[[:space:]]*(#|$)/ { next }
    index(wanted, " " section " ") && !seen[$1]++ { print $1 }
  ' "$project/scripts/packages.txt"
}

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

# install_packages SECTION…: installs what is missing, asks nothing, starts no service.
install_packages() {
  local missing=() package
  for package in $(packages_of "$@"); do
    installed "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  local guard=/usr/sbin/policy-rc.d made=
  if [ ! -e "$guard" ]; then
    # Without it PostgreSQL's package would start a server that nobody asked for (invoke-rc.d(8)).
    printf '#!/bin/sh\nexit 101\n' >"$guard"
    chmod 755 "$guard"
    made=yes
  fi
  local status=0
  { apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "${missing[@]}"; } \
    </dev/null >&2 || status=$?
  [ -z "$made" ] || rm -f "$guard"
  [ "$status" -eq 0 ] || die "apt-get could not install: ${missing[*]}"
}

# build_preset NAME [TARGET…]: configures and builds; build_dir is set.
build_preset() {
  local preset=$1
  shift
  build_dir=$project/build/$preset
  say "configuring and building preset $preset"
  (cd "$project" && cmake --preset "$preset" >/dev/null) || die "cmake --preset $preset failed"
  cmake --build "$build_dir" --parallel "$(nproc)" ${@:+--target "$@"} >&2 || die "the build of preset $preset failed"
}
