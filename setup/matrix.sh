#!/bin/sh
# Quickstart and tests on hosts that lack something: `npm run test:matrix -- [--folder FOLDER] [CELL...]`.
set -eu
. "$(dirname "$0")/temporary-folder.sh"
sh "$(dirname "$0")/prepare.sh" server network quickstart build tests systems
exec node "$(dirname "$0")/../dist/setup/matrix/main.js" "$@"
