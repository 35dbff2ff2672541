#!/usr/bin/env bash
# A dependency upgrade that is tried at night, tested, and proposed; in the morning a person looks at the report and approves.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
viv=${VIV:-viv}
place=$(mktemp -d "${TMPDIR:-/tmp}/vivarium-example-XXXXXX")
trap '"$viv" automation rm upgrade >/dev/null 2>&1 || true; rm -rf "$place"' EXIT
project=$place/report
git() { command git -C "$project" -c user.name=example -c user.email=example@example.com -c init.defaultBranch=main "$@"; }
mkdir "$project"
cp -r "$here/../dependency-upgrade/report/." "$project"
git init -q
cd "$project"
npm install --offline --no-audit --no-fund --loglevel=error >/dev/null
git add .
git commit -q -m "A report"

install="npm install --offline --no-audit --no-fund"
# Three at night is far away; the firing by hand stands for it.
"$viv" automation add upgrade --cron '0 3 * * *' --timezone UTC \
  --run "$install ./vendor/plain-table-1.1.0.tgz" \
  --run "$install ./vendor/plain-table-2.0.0.tgz" \
  --check "npm test" --setup "npm ci --offline --no-audit --no-fund"
"$viv" automation test upgrade
"$viv" automation run upgrade
grep -q 'plain-table-1.0.0' package.json
echo "Nothing has changed in the project yet."
"$viv" report --since today
