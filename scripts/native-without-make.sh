#!/usr/bin/env bash
# Builds the cell and the front where there is a compiler but no make, with the flags of the Makefile.
# Usage: native-without-make.sh FOLDER
set -euo pipefail
out=$1
native=$(cd "$(dirname "${BASH_SOURCE[0]}")/../native" && pwd)
compiler=${CC:-cc}
read -ra flags <<<"$(sed -n 's/^WARN = //p' "$native/Makefile") ${CFLAGS:--O2}"
read -ra versions <<<"$(sh "$native/front/versions.sh")"
if printf 'int main(void){return 0;}' | "$compiler" -static -x c - -o /dev/null 2>/dev/null; then
  flags+=(-static)
fi
shopt -s globstar
sources=()
for source in "$native"/**/*.c; do
  [[ $source == "$native"/tests/* || $source == "$native"/front/* ]] || sources+=("$source")
done
"$compiler" "${flags[@]}" -pthread -o "$out/cell" "${sources[@]}"
"$compiler" "${flags[@]}" "${versions[@]}" -pthread -o "$out/front" "$native"/front/*.c "$native/shared/frames.c"
