#!/usr/bin/env bash
# Makes a fresh checkout ready: the pinned Node, npm packages, the cell, the dashboard, and Debian packages where that is possible.
# With the argument `demo`, what the demo does not show is left for later; with `lab` or `build`, JupyterLab's front end is made, too (VIV_NO_LAB=1 turns that off).
# Says only what it does or misses, on standard error; a second run finds nothing to do.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
. scripts/node.sh
. scripts/apt.sh
. scripts/lock.sh

say() { printf '%s\n' "$*" >&2; }
fail() {
  say "$@"
  exit 1
}

digest() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -d ' ' -f 1; }

# A stamp lies in the folder it speaks for, so that it goes when the folder goes.
packages_stamp=node_modules/.setup-stamp
cell_stamp=build/.setup-stamp
system_stamp=.cache/system-stamp
web_packages_stamp=web/node_modules/.setup-stamp
web_stamp=build/web/.setup-stamp
lab_packages_stamp=lab/node_modules/.setup-stamp
lab_stamp=build/lab/.setup-stamp
packages_key() { { uname -sm && cat package-lock.json; } | digest; }
cell_key() {
  shopt -s globstar
  { uname -sm && echo "${CC:-cc}" native/**/*.[ch] && sh native/front/versions.sh && cat native/Makefile native/**/*.[ch]; } | digest
}
web_packages_key() { { uname -sm && cat web/package-lock.json; } | digest; }
web_key() {
  local names
  names=$(find web src/base/schema src/base/wire src/interfaces/client scripts/build-web.ts -name node_modules -prune -o -type f -print | LC_ALL=C sort)
  { web_packages_key && packages_key && echo "$names" && echo "$names" | tr '\n' '\0' | xargs -0 cat; } | digest
}
lab_packages_key() { { uname -sm && cat lab/package-lock.json; } | digest; }
lab_key() { { lab_packages_key && packages_key && cat lab/*.* scripts/build-lab.ts; } | digest; }
stamped() { [ "$(cat "$1" 2>/dev/null)" = "$2" ]; }

find_npm() {
  case ${npm_execpath:-} in
    */npm-cli.js) printf '%s' "$npm_execpath" ;;
    *) PATH=$(outer_path) command -v npm ;;
  esac
}

# run_npm NODE ARGUMENT...: npm on that Node, free of what an npm that calls us has set.
run_npm() {
  local with=$1 npm
  shift
  npm=$(find_npm) || fail "npm is not installed; it comes with Node."
  env -u npm_config_dry_run -u npm_config_global -u npm_config_json \
    PATH="$(dirname "$with"):$(outer_path)" "$with" "$(real_path "$npm")" "$@"
}

real_path() {
  local path=$1 link
  while link=$(readlink "$path"); do
    case $link in
      /*) path=$link ;;
      *) path=$(dirname "$path")/$link ;;
    esac
  done
  printf '%s' "$path"
}

# Fetches the pinned Node alone. npm on an older Node leaves out packages that want a newer one, without a word.
fetch_pinned() {
  local own=$1 work archive
  work="$pinned_cache.$$"
  say "Node $(version_of "$own") is older than 22.18: fetching Node $pinned_version for this project."
  rm -rf "$work" && mkdir -p "$work"
  archive=$(cd "$work" && run_npm "$own" pack --silent --ignore-scripts "$pinned_package@$pinned_version" | tail -n 1) ||
    drop_and_fail "$work" "npm could not fetch $pinned_package@$pinned_version; install Node 22.18 or newer, or look at the registry that npm is set to."
  is_pinned "$own" "$work/$archive" ||
    drop_and_fail "$work" "The Node that was fetched is not the one package.json names; nothing was installed."
  tar -xzf "$work/$archive" -C "$work" package/bin/node
  rm -rf "$pinned_cache"
  mv "$work/package" "$pinned_cache"
  rm -rf "$work"
}

drop_and_fail() {
  rm -rf "$1"
  fail "$2"
}

is_pinned() {
  "$1" -e '
    const { readFileSync } = require("fs");
    const { integrity } = JSON.parse(readFileSync("package.json", "utf8")).pinnedNode;
    const hash = require("crypto").createHash("sha512").update(readFileSync(process.argv[1])).digest("base64");
    process.exit(integrity[process.arch] === `sha512-${hash}` ? 0 : 1);
  ' "$2"
}

# Sets $node to one that npm ci and everything after it can run on.
find_node() {
  local own version
  own=$(machine_node) || fail "Node is not installed; Vivarium needs Node 20 or newer to set itself up."
  version=$(version_of "$own")
  at_least "$version" 20 0 || fail "Node $version is too old; Vivarium needs Node 20 or newer to set itself up."
  node=$own
  at_least "$version" 22 18 && return
  node=$(pinned_node) && return
  [ -n "$pinned_package" ] || fail "Node $version is too old here; install Node 22.18 or newer ($(uname -sm) has no pinned one)."
  fetch_pinned "$own"
  node=$(pinned_node) && return
  fail "Node $version is too old, and the pinned Node $pinned_version does not run on this machine; install Node 22.18 or newer."
}

set_up_packages() {
  local key
  key=$(packages_key)
  stamped $packages_stamp "$key" && return
  find_node
  say "Installing npm packages."
  run_npm "$node" ci --include=dev --include=optional --ignore-scripts --no-progress --loglevel=error >&2 ||
    fail "npm could not install the packages; the lines above say why."
  mkdir -p node_modules
  echo "$key" >$packages_stamp
}

set_up_cell() {
  local key
  [ "$(uname -s)" = Linux ] || return 0
  key=$(cell_key)
  [ -x build/cell ] && [ -x build/front ] && stamped $cell_stamp "$key" && return
  if ! command -v "${CC:-cc}" >/dev/null; then
    say_no_compiler
    return
  fi
  say "Building the cell."
  rm -f $cell_stamp
  build_cell >&2 || fail "The cell did not compile; the lines above say why."
  echo "$key" >$cell_stamp
}

# The pages are no part of what must work: without them `viv` does all the same.
set_up_web() {
  [ -f web/package-lock.json ] || return 0
  set_up_pages web "$(web_packages_key)" "$web_packages_stamp" "the dashboard" "\`viv open\` shows no pages" || return 0
  build_pages scripts/build-web.ts "$(web_key)" "$web_stamp" "the dashboard"
}

set_up_lab() {
  [ -f lab/package-lock.json ] || return 0
  set_up_pages lab "$(lab_packages_key)" "$lab_packages_stamp" "JupyterLab's front end" "\`viv notebook\` needs the machine's own JupyterLab" || return 0
  build_pages scripts/build-lab.ts "$(lab_key)" "$lab_stamp" "JupyterLab's front end"
}

# set_up_pages FOLDER KEY STAMP WHAT LOSS: the npm packages of a front end.
set_up_pages() {
  stamped "$3" "$2" && return
  find_node
  say "Installing npm packages of $4."
  if ! run_npm "$node" ci --prefix "$1" --include=dev --ignore-scripts --no-progress --loglevel=error >&2; then
    say "npm could not install the packages of $4; the lines above say why, and $5."
    return 1
  fi
  echo "$2" >"$3"
}

# build_pages PROGRAM KEY STAMP WHAT
build_pages() {
  stamped "$3" "$2" && return
  node=$(choose_node) || fail "No Node that runs TypeScript: install Node 22.18 or newer."
  say "Building $4."
  "$node" "$1" >&2 || fail "$4 could not be built; the lines above say why."
  echo "$2" >"$3"
}

build_cell() {
  mkdir -p build
  if command -v make >/dev/null; then
    # make can't hold a path with spaces, so the path is a relative one.
    make -s -j2 -C native OUT=../build
  else
    bash scripts/native-without-make.sh build
  fi
}

say_no_compiler() {
  if [ -x build/cell ] || [ -x "dist/native/$(cell_platform)/cell" ]; then
    say "No C compiler (${CC:-cc}): the cell that was built before is used."
  else
    say "No C compiler (${CC:-cc}): without it the cell is not built and sandboxes have no walls; install one (Debian: gcc and libc6-dev)."
  fi
}

cell_platform() { case $(uname -m) in aarch64) echo linux-arm64 ;; *) echo linux-x64 ;; esac; }

# Debian packages that make it better: program, package, what their lack costs.
set_up_system() {
  local missing
  [ "$(uname -s)" = Linux ] || return 0
  PATH=$PATH:/usr/sbin:/sbin command -v mkfs.btrfs >/dev/null && return
  missing="btrfs-progs $(id -u) ${VIV_NO_APT:-}"
  stamped $system_stamp "$missing" && return
  if ! can_apt || ! apt_install .cache/apt.log btrfs-progs; then
    say "btrfs-progs is not installed: snapshots, forks and rollbacks copy what changed instead of costing nothing."
  fi
  echo "$missing" >$system_stamp
}

mkdir -p .cache
take_lock .cache/setup.lock
set_up_packages
set_up_system
set_up_cell
[ "${1:-}" = demo ] || set_up_web
case ${1:-} in lab | build) [ -n "${VIV_NO_LAB:-}" ] || set_up_lab ;; esac
