#!/bin/sh
# The reverse of install-service.sh: `npm run uninstall-service [-- --purge]`. Works from a checkout that was never built, too.
set -eu
program=$(dirname "$0")/../dist/setup/service/main.js
if [ ! -f "$program" ]; then
  program=/usr/lib/berth/dist/setup/service/main.js
fi
exec node "$program" uninstall "$@"
