#!/bin/sh
# Set-up, type check, lint, all tests: `npm test [-- FILTER...]`. The last line is the count.
set -eu
sh "$(dirname "$0")/prepare.sh"
exec node "$(dirname "$0")/../dist/setup/test/main.js" "$@"
