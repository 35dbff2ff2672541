#!/usr/bin/env bash
# A script from somewhere runs inside; what it did is looked at, and only the useful part is taken out.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
viv=${VIV:-viv}
place=$(mktemp -d "${TMPDIR:-/tmp}/vivarium-example-XXXXXX")
trap '"$viv" rm "$sandbox" >/dev/null 2>&1 || true; rm -rf "$place"' EXIT
mkdir "$place/project"
cp "$here/install.sh" "$place/project"
cd "$place/project"
git init -q

sandbox=$(MY_SECRET_TOKEN=canary-7d1f "$viv" create --network off --json | sed -n 's/.*"name":"\([^"]*\)".*/\1/p' | head -n 1)
"$viv" exec "$sandbox" -- bash install.sh
echo "What it changed in the project:"
"$viv" diff "$sandbox"
echo "What it changed elsewhere, in the clone:"
"$viv" diff "$sandbox" --system
[ -z "$("$viv" exec "$sandbox" -- cat loot.txt)" ]
echo "Its loot is empty: keys, secret variables and the network do not exist inside."
"$viv" promote "$sandbox" --only bin
[ "$(bin/tool)" = tool ]
[ ! -e loot.txt ]
! grep -q 192.0.2.1 "$HOME/.bashrc" 2>/dev/null
echo "Only bin/ was taken out; reality's home folder is untouched."
