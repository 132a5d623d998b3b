#!/bin/sh
# Compiles a small program for the host, which is all of a folder's C files, into the file OUTPUT.
# usage: build-program.sh FOLDER OUTPUT
set -eu
folder=$1
output=$2
mkdir -p "$(dirname "$output")"
${CC:-cc} -static -Os -Wall -Wextra -Werror -std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -fstack-protector-strong \
  -ffunction-sections -fdata-sections -Wl,--gc-sections -s -o "$output.new" "$folder"/*.c
mv "$output.new" "$output"
