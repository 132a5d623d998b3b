#!/bin/sh
# From a bare checkout to the output of a virtual machine: `npm run quickstart [-- IMAGE [COMMAND...]] [-- --keep | --stop]`.
set -eu
. "$(dirname "$0")/temporary-folder.sh"
sh "$(dirname "$0")/prepare.sh" server quickstart build
exec node "$(dirname "$0")/../dist/setup/quickstart/main.js" "$@"
