#!/bin/sh
# Compiles the C tests of berth-init with the address and undefined-behaviour sanitizers.
# usage: build-tests.sh OUTPUT_FOLDER
set -eu
here=$(cd "$(dirname "$0")" && pwd)
source=$here/../../../../plugins/guest/init
out=$1
flags="-g -O1 -Wall -Wextra -Werror -std=gnu11 -D_GNU_SOURCE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -I$source -I$here"
mkdir -p "$out/objects"
# main.c is the real first process: its parts are tested, and itself by booting machines.
for file in "$source"/*.c; do
  case $file in */main.c) continue ;; esac
  echo "$file $out/objects/$(basename "$file" .c).o"
done > "$out/list"
echo "$here/client.c $out/objects/test-client.o" >> "$out/list"
xargs -P 2 -n 2 sh -c "exec ${CC:-cc} $flags -c \"\$0\" -o \"\$1\"" < "$out/list"
for file in "$here"/*.test.c "$here/fuzz.c" "$here/agent-main.c"; do
  echo "$file $out/$(basename "$file" .c)"
done > "$out/list"
xargs -P 2 -n 2 sh -c "exec ${CC:-cc} $flags \"\$0\" $out/objects/*.o -o \"\$1\"" < "$out/list"
rm "$out/list"
