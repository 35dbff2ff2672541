#!/usr/bin/env bash
# Which upgrade of a dependency works? Every candidate is installed in a clone of its own, and only the best reaches the project.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
viv=${VIV:-viv}
place=$(mktemp -d "${TMPDIR:-/tmp}/vivarium-example-XXXXXX")
trap 'rm -rf "$place"' EXIT
project=$place/report
git() { command git -C "$project" -c user.name=example -c user.email=example@example.com -c init.defaultBranch=main "$@"; }
mkdir "$project"
cp -r "$here/report/." "$project"
git init -q
cd "$project"
npm install --offline --no-audit --no-fund --loglevel=error >/dev/null
git add .
git commit -q -m "A report"

install="npm install --offline --no-audit --no-fund"
"$viv" try \
  --attempt "minor=$install ./vendor/plain-table-1.1.0.tgz" \
  --attempt "major=$install ./vendor/plain-table-2.0.0.tgz" \
  --attempt "major-adapted=$install ./vendor/plain-table-2.0.0.tgz && sed -i 's|return table(\(.*\));|return table({ rows: \1 }).join(\"\\\\n\");|' src/report.js" \
  --check "npm test" --setup "npm ci --offline --no-audit --no-fund" --promote --keep none
grep -q 'plain-table-1.1.0' package.json
! grep -q '2.0.0' package.json
npm ci --offline --no-audit --no-fund --loglevel=error >/dev/null
npm test >/dev/null
echo "The project uses plain-table 1.1.0 now, and its tests pass."
