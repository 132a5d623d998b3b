#!/bin/sh
# Builds, then runs one benchmark: `npm run bench -- NAME`. Only JSON lines go to standard output.
set -eu
sh "$(dirname "$0")/prepare.sh" >&2
exec node "$(dirname "$0")/../dist/bench/main.js" "$@"
