#!/bin/sh
# Fetches a VMM's release, or takes a file: `npm run install-vmm -- firecracker|cloud-hypervisor [--from FILE] [--to FOLDER]`.
set -eu
sh "$(dirname "$0")/prepare.sh" build >&2
exec node --enable-source-maps "$(dirname "$0")/../dist/setup/vmm/main.js" "$@"
