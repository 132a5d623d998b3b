#!/bin/sh
# npm run torture -- [--minutes N] [--seed S]
set -eu
npx --no-install tsc -p .
exec node --enable-source-maps dist/test/torture/main.js "$@"
