#!/usr/bin/env bash
# Installs the peers that the benchmark compares with, and Claude Code for the rows that need it. What is missing is reported there as null.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
. scripts/apt.sh

bash scripts/with-setup.sh bench-agents || echo "Claude Code could not be fetched: the rows that need it have no figure." >&2

missing=()
command -v bwrap >/dev/null || missing+=(bubblewrap)
PATH=$PATH:/usr/sbin command -v runc >/dev/null || missing+=(runc)
command -v rsync >/dev/null || missing+=(rsync)
if [ ${#missing[@]} -eq 0 ]; then
  echo "bubblewrap, runc and rsync are installed."
  exit 0
fi
mkdir -p .cache
if ! can_apt; then
  echo "Run as root where apt exists, or install by hand: ${missing[*]}" >&2
  exit 1
fi
VIV_APT_SECONDS=240 apt_install .cache/apt.log "${missing[@]}" || {
  echo "apt could not install ${missing[*]}; .cache/apt.log says why." >&2
  exit 1
}
