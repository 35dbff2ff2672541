#!/usr/bin/env bash
# Three ways to mend a bug at once; the best one lands in the project, and is taken back again.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
viv=${VIV:-viv}
place=$(mktemp -d "${TMPDIR:-/tmp}/vivarium-example-XXXXXX")
trap 'rm -rf "$place"' EXIT
bash "$here/make.sh" "$place/shop"
cd "$place/shop"
say() { printf '\n%s\n' "$*"; }
tests() { npm test >"$place/out" 2>&1 && echo "tests pass" || echo "tests fail"; }

say "A project with a bug: $(tests)."
say "Three approaches at once, judged by the project's own tests:"
"$viv" try \
  --attempt "upgrade=npm install --offline --no-audit --no-fund ./vendor/money-round-1.1.0.tgz" \
  --attempt "patch=sed -i 's|return round(total.*|return Math.round((Math.round(total(items) * 100) * (100 - percent)) / 100) / 100;|' src/cart.js" \
  --attempt "revert=git -c user.name=me -c user.email=me@example.com revert --no-edit HEAD" \
  --check "npm test" --setup "npm ci --offline --no-audit --no-fund"
experiment=$("$viv" experiments --json | grep -o 'exp[0-9a-z]\{26\}' | head -n 1)

say "Nothing has changed in reality yet: $(tests)."
say "The winner, and only the winner, lands in the project:"
"$viv" promote "$experiment" --message "Round discounted prices in cents"
git diff --stat
say "Now: $(tests)."
[ "$(tests)" = "tests pass" ]

say "One command takes it back:"
"$viv" undo
say "Now: $(tests)."
[ "$(tests)" = "tests fail" ]
[ -z "$(git status --porcelain)" ]
"$viv" experiment "$experiment" rm
