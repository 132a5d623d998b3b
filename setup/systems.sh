#!/bin/sh
# Berth on other systems: `npm run test:systems -- SUITE [STEP...]`.
set -eu
. "$(dirname "$0")/temporary-folder.sh"
sh "$(dirname "$0")/prepare.sh" server network build systems
exec node "$(dirname "$0")/../dist/setup/systems/main.js" "$@"
