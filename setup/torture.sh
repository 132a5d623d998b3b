#!/bin/sh
# npm run torture -- [--minutes N] [--seed S]
set -eu
node_modules/typescript-native/bin/tsc -p .
exec node --enable-source-maps dist/test/torture/main.js "$@"
