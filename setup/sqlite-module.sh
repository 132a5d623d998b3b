#!/bin/sh
# Compiles the SQLite module where it takes that: `sqlite-module.sh`. `sqlite-module.sh state` says `works`, `uncompiled` or `absent`.
# Which module it is, core/db/sqlite-client.ts decides; the later one has its binary inside its package.
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
# Whoever says that it is compiled beside waits for it, too.
if [ "$state" != uncompiled ] || [ "${BERTH_SQLITE_BESIDE:-}" = yes ]; then exit 0; fi

# Where Node's own headers lie beside it, they need not be downloaded, and a nodedir in somebody's .npmrc, for another Node, does not count.
# Two names: node-gyp before 12 knows the first alone, and npm after 11 may refuse that.
prefix=$(dirname "$(dirname "$(node -p 'require("node:fs").realpathSync(process.execPath)')")")
version=$(sed -n 's/^#define NODE_\(MAJOR\|MINOR\|PATCH\)_VERSION *//p' "$prefix/include/node/node_version.h" 2> /dev/null | paste -s -d .)
if [ "v$version" = "$(node --version)" ]; then
  npm_config_nodedir=$prefix
  npm_package_config_node_gyp_nodedir=$prefix
  export npm_config_nodedir npm_package_config_node_gyp_nodedir
fi

# Almost all of it is SQLite itself, one file of C, for which the highest level of optimization takes twice the time. No binary for this Node is to be had, so none is looked for.
exec env CFLAGS="-O1 ${CFLAGS:-}" npm_config_build_from_source=true npm rebuild --loglevel=error --ignore-scripts=false "$driver"
