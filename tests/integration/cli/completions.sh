#!/bin/bash
# swapctl's completion in bash, zsh and fish, typed into a terminal, with a real swapd behind it.
#
#   tests/integration/cli/completions.sh [--build DIR]
#
# Needs root, tmux, zsh and fish. Exit status 77: one of them is missing.
set -euo pipefail
project=$(cd "$(dirname "$0")/../../.." && pwd)
. "$project/scripts/common.sh"
. "$project/tests/integration/common.sh"

build=$project/build/dev observer=seccomp failed=0
read_options "build" "$@"
need_root
for program in tmux zsh fish; do
  command -v "$program" >/dev/null || { printf 'cli_completions: Skipped\n%s is missing\n' "$program"; exit 77; }
done

dir=$(mktemp -d /tmp/swapd-complete-XXXXXX)
front= sleeper=
terminal() { tmux -L "swapd-$$" "$@"; }
cleanup() {
  terminal kill-server 2>/dev/null || true
  [ -z "$sleeper" ] || kill "$sleeper" 2>/dev/null || true
  [ -z "$front" ] || { kill "$front" 2>/dev/null && wait "$front"; } 2>/dev/null || true
  rm -rf "$dir"
}
trap cleanup EXIT

printf '[class.quick]\n[class.slow]\n' >"$dir/policy.toml"
start_swapd --config "$dir/policy.toml"
"$build/src/cli/swapctl" --socket "$dir/s" run -- sleep 300 &
sleeper=$!
until_true 10 ctl why "$sleeper" || die "nothing runs under swapd"
ln -s "$build/src/cli/swapctl" "$dir/swapctl"
mkdir "$dir/home"
touch "$dir/home/file-of-mine"
cat >"$dir/bash.rc" <<END
PS1='> '
. $project/src/cli/completions/swapctl.bash
END
cat >"$dir/.zshrc" <<END
PS1='> ' RPS1=
fpath=($project/src/cli/completions \$fpath)
autoload -U compinit && compinit -u -D
END

# begin SHELL COMMAND…: a terminal with that shell in it.
begin() {
  shell=$1
  shift
  (cd "$dir/home" && env -i PATH="$dir:$PATH" HOME="$dir/home" SWAPD_SOCKET="$dir/s" TERM=screen LC_ALL=C.UTF-8 ZDOTDIR="$dir" \
    tmux -L "swapd-$$" -f /dev/null new-session -d -s "$shell" -x 150 -y 40 "$@")
  shows '^> *$' || { complain "$shell: no prompt"; return 1; }
}
screen() { terminal capture-pane -p -t "$shell"; }
shows() { until_true 20 shows_now "$1"; }
shows_now() { screen | grep -qE "$1"; }
# after TYPED REGEX: what the screen must show when this and a tab were typed.
after() {
  terminal send-keys -t "$shell" -l "$1"
  terminal send-keys -t "$shell" Tab
  if shows "$2"; then
    echo "ok: $shell: '$1'"
  else
    # A second tab has all shells show what there is.
    terminal send-keys -t "$shell" Tab
    shows "$2" && echo "ok: $shell: '$1', two tabs" || { echo "not so: $shell: '$1' gives no '$2':" >&2; screen >&2; failed=1; }
  fi
  terminal send-keys -t "$shell" C-c
  terminal send-keys -t "$shell" C-l
  until_true 10 empty_screen || true
}
empty_screen() { [ "$(screen | grep -c .)" = 1 ] && shows_now '^> *$'; }

for each in bash zsh fish; do
  case $each in
    bash) begin bash bash --rcfile "$dir/bash.rc" ;;
    zsh) begin zsh zsh -d ;;
    fish) begin fish fish --no-config -C "function fish_prompt; echo '> '; end; set fish_greeting; . $project/src/cli/completions/swapctl.fish" ;;
  esac || continue
  after 'swapctl wh' '^> swapctl why'
  after 'swapctl why ' "^> swapctl why $sleeper"
  after 'swapctl enroll --tr' '^> swapctl enroll --tree'
  after "swapctl enroll ${sleeper%?}" "^> swapctl enroll $sleeper|$sleeper +.*sleep"
  after 'swapctl run --class qu' '^> swapctl run --class quick'
  after 'swapctl run --observe se' '^> swapctl run --observe seccomp'
  after 'swapctl run --fifo 50 -- basenam' '^> swapctl run --fifo 50 -- basename'
  after 'swapctl class show slo' '^> swapctl class show slow'
  after 'swapctl policy ch' '^> swapctl policy check'
  after 'swapctl policy check file-o' '^> swapctl policy check file-of-mine'
  after 'swapctl graph --format js' '^> swapctl graph --format json'
  terminal kill-session -t "$shell"
done
exit "$failed"
