# Read by the other scripts: where the system's folder for temporary files cannot be written to, or has less room than a test's servers and databases take, one in the checkout takes its place.
if ! mktemp -u > /dev/null 2>&1 || ! rm "$(mktemp 2> /dev/null || echo /nonexistent/file)" 2> /dev/null ||
  [ "$(df -Pk "${TMPDIR:-/tmp}" | awk 'END { print ($4 < 1048576) }')" = 1 ]; then
  TMPDIR=$(cd "$(dirname "$0")/.." && pwd)/.cache/tmp
  mkdir -p "$TMPDIR"
  export TMPDIR
fi
