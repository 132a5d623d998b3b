#!/bin/sh
# Compiles berth-spawner into the file OUTPUT.
# usage: build.sh OUTPUT
set -eu
here=$(dirname "$0")
output=$1
mkdir -p "$(dirname "$output")"
${CC:-cc} -static -Os -Wall -Wextra -Werror -std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -fstack-protector-strong \
  -ffunction-sections -fdata-sections -Wl,--gc-sections -s -o "$output.new" "$here"/*.c
mv "$output.new" "$output"
