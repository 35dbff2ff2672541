#!/usr/bin/env bash
# Which setting is best? Each is tried in a clone, a command measures it, and the best one is promoted.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
viv=${VIV:-viv}
place=$(mktemp -d "${TMPDIR:-/tmp}/vivarium-example-XXXXXX")
trap 'rm -rf "$place"' EXIT
cp -r "$here/search" "$place/search"
cd "$place/search"
git init -q
set_bucket() { printf "echo '{ \"bucket\": %s }' > config.json" "$1"; }

"$viv" try \
  --attempt "small=$(set_bucket 10)" --attempt "middle=$(set_bucket 100)" \
  --attempt "large=$(set_bucket 1000)" --attempt "huge=$(set_bucket 100000)" \
  --check "node check.js" --measure "node measure.js" --minimise --promote --keep none
grep -q '"bucket": 100 ' config.json
echo "config.json holds the best setting now: $(cat config.json)"
