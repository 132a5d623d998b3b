#!/bin/sh
# Compiles the C tests of berth-init with the address and undefined-behaviour sanitizers.
# usage: build-tests.sh OUTPUT_FOLDER
set -eu
mkdir -p "$1/objects"
OUT=$(cd "$1" && pwd)
# Relative names from here on: the checkout may stand in a folder with spaces in its name.
cd "$(dirname "$0")"
SOURCE=../../../../plugins/guest/init
FLAGS="-g -O1 -Wall -Wextra -Werror -std=gnu11 -D_GNU_SOURCE -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -I$SOURCE -I."
export OUT FLAGS
# main.c is the real first process: its parts are tested, and itself by booting machines.
for file in "$SOURCE"/*.c; do
  case $file in */main.c) continue ;; esac
  echo "$file $(basename "$file" .c).o"
done > "$OUT/list"
printf '%s\n' 'client.c test-client.o' 'fuzz-inputs.c test-fuzz-inputs.o' >> "$OUT/list"
xargs -P 2 -n 2 sh -c 'exec ${CC:-cc} $FLAGS -c "$0" -o "$OUT/objects/$1"' < "$OUT/list"
for file in *.test.c fuzz.c agent-main.c; do
  echo "$file $(basename "$file" .c)"
done > "$OUT/list"
xargs -P 2 -n 2 sh -c 'exec ${CC:-cc} $FLAGS "$0" "$OUT"/objects/*.o -o "$OUT/$1"' < "$OUT/list"
rm "$OUT/list"
