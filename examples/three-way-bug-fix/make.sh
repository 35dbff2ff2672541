#!/usr/bin/env bash
# Makes the project of this example in the folder given: a good commit, then one that brings a feature and a failing test.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
project=$1
git() { command git -C "$project" -c user.name=example -c user.email=example@example.com -c init.defaultBranch=main "$@"; }

mkdir -p "$project"
cp -r "$here/shop/." "$project"
git init -q
(cd "$project" && npm install --offline --no-audit --no-fund --loglevel=error >/dev/null)
git add .
git commit -q -m "A shop"
git apply "$here/discount.patch"
git commit -q -a -m "Discounts in percent"
