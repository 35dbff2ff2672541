#!/usr/bin/env bash
# Sets up, then runs a task on the right Node. What follows the task's name is passed on to it.
# The set-up speaks on standard error, so that the task's output stays clean.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
task=${1:?usage: with-setup.sh demo|test|soak|bench|bench-agents|check|format|build|pictures [ARGUMENT...]}
shift

if ! bash scripts/setup.sh "$task" >&2; then
  case $task in test | soak) echo "0 passed, 1 failed, 0 skipped" ;; esac
  exit 1
fi

. scripts/node.sh
node=$(choose_node) || {
  echo "No Node that runs TypeScript: install Node 22.18 or newer." >&2
  exit 1
}
export PATH="$(dirname "$node"):$root/node_modules/.bin:$(outer_path)"

case $task in
  demo) program=scripts/demo.ts ;;
  test) program=scripts/test.ts ;;
  soak) program=scripts/soak.ts ;;
  bench) program=bench/bench.ts ;;
  bench-agents) program=bench/install-agents.ts ;;
  check) program=scripts/check.ts ;;
  build) program=scripts/build.ts ;;
  pictures) program=scripts/pictures.ts ;;
  format) exec oxfmt "$@" ;;
  *)
    echo "There is no task '$task': demo, test, soak, bench, bench-agents, check, format, build and pictures exist." >&2
    exit 2
    ;;
esac
if [ ! -f "$program" ]; then
  echo "$program is not in this checkout, so '$task' can't run." >&2
  exit 1
fi
exec "$node" "$program" "$@"
