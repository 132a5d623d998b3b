#!/bin/sh
# Compiles the SQLite module if necessary: `sqlite-module.sh`. `sqlite-module.sh state` prints `works`, `uncompiled` or `absent`.
# core/db/sqlite-client.ts chooses the module; the later version has its binary inside its package.
set -eu
cd "$(dirname "$0")/.."
driver=$(node -p 'Number(process.versions.napi) >= 10 ? "better-sqlite3-napi" : "better-sqlite3"')

if node -e "new (require('$driver'))(':memory:')" > /dev/null 2>&1; then
  state=works
elif [ -d "node_modules/$driver" ]; then
  state=uncompiled
else
  state=absent
fi
if [ "${1:-}" = state ]; then
  echo "$state"
  exit 0
fi
# A caller that compiles the module in parallel says so here, and waits for it itself.
if [ "$state" != uncompiled ] || [ "${BERTH_SQLITE_BESIDE:-}" = yes ]; then exit 0; fi

# If Node's own headers are installed beside it, they need not be downloaded; a nodedir in the user's .npmrc, which may be for another Node, is overridden.
# Two names: node-gyp before 12 knows only the first, and npm after 11 may refuse it.
prefix=$(dirname "$(dirname "$(node -p 'require("node:fs").realpathSync(process.execPath)')")")
version=$(sed -n 's/^#define NODE_\(MAJOR\|MINOR\|PATCH\)_VERSION *//p' "$prefix/include/node/node_version.h" 2> /dev/null | paste -s -d .)
if [ "v$version" = "$(node --version)" ]; then
  npm_config_nodedir=$prefix
  npm_package_config_node_gyp_nodedir=$prefix
  export npm_config_nodedir npm_package_config_node_gyp_nodedir
fi

# Almost all of the module is SQLite itself, one file of C, for which the highest level of optimization takes twice the time. No binary exists for this Node, so none is looked for.
exec env CFLAGS="-O1 ${CFLAGS:-}" npm_config_build_from_source=true npm rebuild --loglevel=error --ignore-scripts=false "$driver"
