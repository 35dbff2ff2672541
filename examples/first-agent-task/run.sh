#!/usr/bin/env bash
# From nothing installed to a proven change in the project: an agent mends a bug, another agent looks at it, and you take it over.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
viv=${VIV:-viv}
# Not in /tmp: a sandbox has a /tmp of its own.
place=$(mktemp -d "$HOME/vivarium-example-XXXXXX")
# Folders of its own: what you have of Vivarium stays as it is.
export VIV_HOME=${VIV_HOME:-$place/state}
export VIV_CONFIG=$place/config.json
say() { printf '\n%s\n' "$*"; }
tests() { npm test >"$place/out" 2>&1 && echo "tests pass" || echo "tests fail"; }
clean_up() {
  { "$viv" prune --all && "$viv" down; } >"$place/out" 2>&1 || true
  kill "$model" 2>/dev/null || true
  rm -rf "$place"
}

# Stands for the model API. With a key of your own, leave this and the config out: `viv agents login` writes what is needed.
node "$here/model.mjs" "$place/port" &
model=$!
trap clean_up EXIT
until [ -s "$place/port" ]; do sleep 0.1; done
echo "{\"models\": {\"anthropic\": {\"url\": \"http://127.0.0.1:$(cat "$place/port")\", \"secret\": \"anthropic\"}}}" >"$VIV_CONFIG"

cp -r "$here/shop" "$place/shop"
cd "$place/shop"
git init -q .
git add -A
git -c user.name=me -c user.email=me@example.com commit -qm "A shop"

say "A project with a bug: $(tests)."

say "1. Get the agent. It is kept beside Vivarium, and nothing else on the machine changes:"
"$viv" agents install claude

say "2. Log in. The key stays outside of every sandbox; programs inside have a placeholder:"
echo "sk-example-not-a-real-key" | "$viv" agents login claude --all-projects
"$viv" agents

say "3. Give it the task, with a check that proves the result and a reviewer that it may ask:"
"$viv" task "The tests fail. Find the bug and mend it." --check "npm test" --with reviewer
experiment=$("$viv" experiments --json | grep -o 'exp[0-9a-z]\{26\}' | head -n 1)

say "4. Nothing of that is in your project yet: $(tests). What was done, and what was left for later:"
"$viv" tasks

say "5. Take it over:"
"$viv" promote "$experiment"
git diff
say "Now: $(tests)."
[ "$(tests)" = "tests pass" ]

say "6. One command would take it back: viv undo. The trail says who did what:"
"$viv" audit | grep -E 'agent .* (bash|coordinate_sibling)|promotion'
