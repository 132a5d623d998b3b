#!/bin/sh
# Builds, then installs Berth as services of systemd: `npm run install-service [-- --root DIR]`.
set -eu
sh "$(dirname "$0")/prepare.sh" server network build
exec node "$(dirname "$0")/../dist/setup/service/main.js" install "$@"
