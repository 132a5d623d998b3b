#!/bin/sh
# npm run fuzz -- NAME [--minutes N] [--seed S]
set -eu
npx --no-install tsc -p .
exec node --enable-source-maps dist/test/fuzz/run/main.js "$@"
