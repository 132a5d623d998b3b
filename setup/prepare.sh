#!/bin/sh
# Brings a checkout into a state in which it runs: prepare.sh NEED... installs the host packages for these needs, npm packages, and makes a fresh build.
# Does nothing where nothing is to do, and says of each step that takes long how long it took.
set -eu
. "$(dirname "$0")/temporary-folder.sh"
cd "$(dirname "$0")/.."

if ! command -v node > /dev/null 2>&1 || ! command -v npm > /dev/null 2>&1; then
  echo 'Node.js 20.20 or later, with npm, is needed: see https://nodejs.org/' >&2
  exit 1
fi
if ! node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 20) ? 0 : 1)'; then
  echo "Node.js 20.20 or later is needed; this is $(node --version)" >&2
  exit 1
fi

sh setup/install-host-packages.sh "$@"

log=$(mktemp)
trap 'rm -f "$log"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Runs a command quietly; shows the end of what it said when it fails.
step () {
  title=$1
  shift
  began=$(date +%s)
  if ! "$@" > "$log" 2>&1; then
    echo "$title: failed after $(($(date +%s) - began)) s:" >&2
    tail -n 40 "$log" >&2
    exit 1
  fi
  echo "$title: done in $(($(date +%s) - began)) s"
}

# On Node 20 one npm module is compiled here (core/db/sqlite-client.ts). Where Node's own headers lie beside it, they need not be downloaded, and a nodedir
# in somebody's .npmrc, for another Node, does not count. Two names: node-gyp before 12 knows the first alone, and npm after 11 may refuse that.
prefix=$(dirname "$(dirname "$(node -p 'require("node:fs").realpathSync(process.execPath)')")")
version=$(sed -n 's/^#define NODE_\(MAJOR\|MINOR\|PATCH\)_VERSION *//p' "$prefix/include/node/node_version.h" 2> /dev/null | paste -s -d .)
if [ "v$version" = "$(node --version)" ]; then
  npm_config_nodedir=$prefix
  npm_package_config_node_gyp_nodedir=$prefix
  export npm_config_nodedir npm_package_config_node_gyp_nodedir
fi

# Later ones have it whole inside its package, and need no script of any package.
case "$(node --version)" in
  v20.* | v21.*) scripts='' waits='the registry, then about a minute for the compiler: the SQLite module' driver=better-sqlite3 ;;
  *) scripts=--ignore-scripts waits='the registry' driver=better-sqlite3-napi ;;
esac

# The module is of use to a Node with the same binary interface alone.
wanted="$(sha256sum < package-lock.json) $(node -p 'process.platform + " " + process.arch + " " + process.versions.modules')"
stamp=node_modules/.berth-lock
if [ -f node_modules/.package-lock.json ] && [ ! -f "$stamp" ] && [ node_modules/.package-lock.json -nt package-lock.json ] && node -e "new (require('$driver'))(':memory:')" > /dev/null 2>&1; then
  printf '%s\n' "$wanted" > "$stamp"
fi
if [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$wanted" ]; then
  echo "npm packages: installing (waits for $waits)"
  # Its level is said here, since `npm run --silent` hands its own on, and then a failure has no reason.
  step 'npm packages' npm ci --no-audit --no-fund --loglevel=error $scripts
  # What the compiler noted belongs to the packages before: it would not look again at files of ours that did not change.
  rm -f dist/tsconfig.tsbuildinfo
  printf '%s\n' "$wanted" > "$stamp"
fi

# The stamp carries the time at which the last complete build began.
build_is_fresh () {
  [ -f dist/.built ] && [ -z "$(find core plugins proxy setup test bench config package.json package-lock.json tsconfig.json -newer dist/.built -print 2> /dev/null | head -n 1)" ]
}
if ! build_is_fresh; then
  mkdir -p dist
  touch dist/.building
  echo 'build: compiling'
  step 'build' npm run --silent build
  mv dist/.building dist/.built
fi
