#!/bin/sh
# Builds, then runs drivers' conformance suites: `npm run conformance -- [--driver NAME]... [--kvm] [--case GROUP]... [--processors N]`.
set -eu
. "$(dirname "$0")/temporary-folder.sh"
sh "$(dirname "$0")/prepare.sh" server network quickstart build tests >&2
exec node --enable-source-maps "$(dirname "$0")/../dist/test/contracts/command/main.js" "$@"
