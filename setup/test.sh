#!/bin/sh
# Set-up, type check, then tests: `npm test [-- WORD...]`, and with --long, which is `npm run test:long`, the long tier. The last line is the count.
set -eu
. "$(dirname "$0")/temporary-folder.sh"
case " $* " in
  *' --long '*) long=long ;;
  *) long='' ;;
esac
sh "$(dirname "$0")/prepare.sh" server network quickstart build tests $long systems
# Without it, the tests that need it are skipped and say so.
if [ -n "$long" ] && [ -z "${BERTH_QEMU:-}" ]; then sh "$(dirname "$0")/unpack-newer-qemu.sh" "$(dirname "$0")/../.cache/newer-qemu" || true; fi
exec node "$(dirname "$0")/../dist/setup/test/main.js" "$@"
