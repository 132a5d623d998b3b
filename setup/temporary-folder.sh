# Read by the other scripts: when the system's folder for temporary files is not writable, or has less room than a test's servers and databases need, a folder in the checkout is used instead.
if ! mktemp -u > /dev/null 2>&1 || ! rm "$(mktemp 2> /dev/null || echo /nonexistent/file)" 2> /dev/null ||
  [ "$(df -Pk "${TMPDIR:-/tmp}" | awk 'END { print ($4 < 1048576) }')" = 1 ]; then
  TMPDIR=$(cd "$(dirname "$0")/.." && pwd)/.cache/tmp
  mkdir -p "$TMPDIR"
  export TMPDIR
fi
