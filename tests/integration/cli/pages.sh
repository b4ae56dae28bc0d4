#!/bin/bash
# The manual pages: no warning of man(1), and each says what the programs say.
#
#   tests/integration/cli/pages.sh [--build DIR]
#
# Exit status 77: man is missing.
set -euo pipefail
project=$(cd "$(dirname "$0")/../../.." && pwd)
. "$project/scripts/common.sh"
. "$project/tests/integration/common.sh"

build=$project/build/dev failed=0
read_options "build" "$@"
# In Docker's images of Debian `man` is a script that says that it is not there.
{ command -v groff && command -v man && man --version; } >/dev/null 2>&1 || { printf 'cli_pages: Skipped\nman-db and groff are missing\n'; exit 77; }

pages=("$build"/man/*.gz)
for page in "${pages[@]}"; do
  for width in 60 80 132; do
    said=$(MANWIDTH=$width LC_ALL=C.UTF-8 MANROFFOPT="" man --warnings=w -E UTF-8 -l -P cat "$page" 2>&1 >"/dev/null") || said="it failed: $said"
    [ -z "$said" ] || { printf 'not so: %s, %s columns wide, without warnings:\n%s\n' "$(basename "$page")" "$width" "$said" >&2; failed=1; }
  done
done
text() { LC_ALL=C.UTF-8 MANWIDTH=200 man -l -P cat "$1" 2>/dev/null | sed 's/.\x08//g'; }

# Each verb and each option of swapctl and swapd stands in its page.
text "$build/man/swapctl.1.gz" >/tmp/swapctl-page.$$
trap 'rm -f /tmp/swapctl-page.$$ /tmp/swapd-page.$$ /tmp/policy-page.$$' EXIT
text "$build/man/swapd.8.gz" >/tmp/swapd-page.$$
has() { grep -qF -- "$2" "$1" || { printf 'not so: %s has %s\n' "$3" "$2" >&2; failed=1; }; }
"$build/src/cli/swapctl" complete -- '' | cut -f1 >/tmp/policy-page.$$
while read -r verb; do
  has /tmp/swapctl-page.$$ "$verb" swapctl.1
  while read -r option; do
    case $option in
      --help | --version) ;;
      --*) has /tmp/swapctl-page.$$ "$option" "swapctl.1, for $verb," ;;
    esac
  done < <("$build/src/cli/swapctl" complete -- "$verb" -- 2>/dev/null | cut -f1; "$build/src/cli/swapctl" complete -- "$verb" - | cut -f1)
done </tmp/policy-page.$$
while read -r option; do has /tmp/swapd-page.$$ "$option" swapd.8; done < <("$build/daemon/swapd" --help | grep -oE '^ +--[a-z-]+' | tr -d ' ' | grep -v -e --help -e --exit-with-pid)

[ -e "$build/man/org.swapd1.5.gz" ] || { echo "not so: there is org.swapd1(5)" >&2; failed=1; }
# Each key of the policy stands in swapd-policy(5).
if [ -e "$build/man/swapd-policy.5.gz" ]; then
  text "$build/man/swapd-policy.5.gz" >/tmp/policy-page.$$
  while read -r key; do has /tmp/policy-page.$$ "$key" swapd-policy.5; done < <(sed -n 's/^\([a-z_]*\) *= .*/\1/p' "$project"/policies/*.toml | sort -u)
else
  echo "not so: there is swapd-policy(5)" >&2
  failed=1
fi
[ "$failed" != 0 ] || echo "ok: ${#pages[@]} pages"
exit "$failed"
