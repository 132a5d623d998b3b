#!/bin/sh
# npm run fuzz -- NAME [--minutes N] [--seed S]
set -eu
node_modules/typescript-native/bin/tsc -p .
exec node --enable-source-maps dist/test/fuzz/run/main.js "$@"
