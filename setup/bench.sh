#!/bin/sh
# Builds, then runs one benchmark: `npm run bench -- NAME`. Only JSON lines go to standard output.
set -eu
. "$(dirname "$0")/temporary-folder.sh"
sh "$(dirname "$0")/prepare.sh" server network quickstart build tests >&2
exec node "$(dirname "$0")/../dist/bench/main.js" "$@"
