#!/bin/sh
# From a bare checkout to the output of a virtual machine: `npm run quickstart [-- IMAGE [COMMAND...]] [-- --keep | --stop]`.
set -eu
sh "$(dirname "$0")/prepare.sh"
exec node "$(dirname "$0")/../dist/setup/quickstart/main.js" "$@"
