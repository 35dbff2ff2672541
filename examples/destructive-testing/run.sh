#!/usr/bin/env bash
# A script that may destroy things is run for real, on a machine that is thrown away afterwards.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
viv=${VIV:-viv}
place=$(mktemp -d "${TMPDIR:-/tmp}/vivarium-example-XXXXXX")
trap '"$viv" rm "$sandbox" >/dev/null 2>&1 || true; rm -rf "$place"' EXIT
mkdir "$place/project"
cp "$here/clean.sh" "$place/project"
cd "$place/project"
git init -q
echo "the only copy" >important.txt
count() { ls -A / /usr/share important.txt clean.sh 2>/dev/null | wc -l; }
before=$(count)

sandbox=$("$viv" create --json | sed -n 's/.*"name":"\([^"]*\)".*/\1/p' | head -n 1)
"$viv" snapshot "$sandbox" before >/dev/null
"$viv" exec "$sandbox" -- sh clean.sh
echo "What it did to the project:"
"$viv" diff "$sandbox"
"$viv" diff "$sandbox" --names | grep -q important.txt
if [ "$(id -u)" = 0 ]; then
  echo "What it did to the system:"
  "$viv" diff "$sandbox" --system
fi
echo "Reality: important.txt says '$(cat important.txt)'."
[ "$(count)" = "$before" ]
"$viv" rollback "$sandbox" before
[ "$("$viv" exec "$sandbox" -- cat important.txt)" = "the only copy" ]
echo "The clone is whole again, and can be wrecked once more."
