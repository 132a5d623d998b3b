#!/bin/sh
# Sets a checkout up: prepare.sh NEED... installs the host packages for these needs and the npm packages, and makes a fresh build.
# With the need `tests` or `systems` (tests on other systems) it installs every npm package and builds with type check; otherwise it installs what the server needs to be compiled and to run.
# It does nothing when everything is up to date, and prints how long each long step took.
set -eu
. "$(dirname "$0")/temporary-folder.sh"
cd "$(dirname "$0")/.."

if ! command -v node > /dev/null 2>&1 || ! command -v npm > /dev/null 2>&1; then
  echo 'Node.js 20.19 or later, with npm, is needed: see https://nodejs.org/' >&2
  exit 1
fi
if ! node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'; then
  echo "Node.js 20.19 or later is needed; this is $(node --version)" >&2
  exit 1
fi

sh setup/install-host-packages.sh "$@"

case " $* " in
  *' tests '* | *' systems '*) extent=all ;;
  *) extent=server ;;
esac

logs=$(mktemp -d)
beside=''
finish () {
  if [ -n "$beside" ]; then kill -- "-$beside" 2> /dev/null || true; fi
  rm -rf "$logs"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Runs a command quietly; shows the end of its output when it fails.
step () {
  title=$1
  shift
  began=$(date +%s)
  if ! "$@" > "$logs/step" 2>&1; then
    echo "$title: failed after $(($(date +%s) - began)) s:" >&2
    tail -n 40 "$logs/step" >&2
    exit 1
  fi
  echo "$title: done in $(($(date +%s) - began)) s"
}

# Whether the packages that only tests and lint need are there, too: a name that package.json has.
has_all () {
  node -e 'process.exit(Object.keys(require("./package.json").devDependencies ?? {}).every((name) => require("node:fs").existsSync(`node_modules/${name}`)) ? 0 : 1)'
}

# The module only works with a Node that has the same binary interface.
wanted="$(sha256sum < package-lock.json) $(node -p 'process.platform + " " + process.arch + " " + process.versions.modules')"
stamp=node_modules/.berth-lock
installed=''
if [ -f node_modules/.package-lock.json ] && [ ! -f "$stamp" ] && [ node_modules/.package-lock.json -nt package-lock.json ] && [ "$(sh setup/sqlite-module.sh state)" != absent ]; then
  # installed by a plain `npm ci`
  installed=yes
elif [ ! -f "$stamp" ] || [ "$(cat "$stamp")" != "$wanted" ]; then
  installed=yes
  echo 'npm packages: installing (waits for the registry)'
  if [ "$extent" = all ]; then omit=--include=dev; else omit=--omit=dev; fi
  # The log level is set here, since `npm run --silent` passes its own on, and then a failure has no reason. No package needs its script except the SQLite module, which is compiled below.
  (step 'npm packages' npm ci --no-audit --no-fund --loglevel=error --ignore-scripts "$omit") || {
    if grep -Eq 'code (EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ENETUNREACH|ETIMEDOUT)' "$logs/step"; then
      echo "npm packages: this host does not reach the registry, and npm's cache lacks some of them" >&2
    fi
    exit 1
  }
  # The compiler's notes belong to the old packages: with them it would not check unchanged files again.
  rm -f dist/tsconfig.tsbuildinfo
fi
if [ "$extent" = all ] && ! has_all; then
  echo 'npm packages of tests and lint: installing (waits for the registry)'
  # Unlike `npm ci` it keeps installed packages.
  step 'npm packages of tests and lint' npm install --no-save --no-audit --no-fund --loglevel=error --ignore-scripts --include=dev
fi
if [ "$installed" = yes ] && [ "$(sh setup/sqlite-module.sh state)" = uncompiled ]; then
  echo 'SQLite module: compiling, beside the build (waits for the compiler)'
  driver_began=$(date +%s)
  setsid sh setup/sqlite-module.sh > "$logs/driver" 2>&1 &
  beside=$!
  export BERTH_SQLITE_BESIDE=yes
fi

# The stamp has the time at which the last complete build began, and whether types were checked.
build_is_fresh () {
  [ -f dist/.built ] && { [ "$extent" != all ] || [ "$(cat dist/.built)" = checked ]; } &&
    [ -z "$(find core plugins proxy cli setup test bench config package.json package-lock.json tsconfig.json -newer dist/.built -print 2> /dev/null | head -n 1)" ]
}
if ! build_is_fresh; then
  mkdir -p dist
  if [ "$extent" = all ]; then
    echo checked > dist/.building
    echo 'build: compiling, with type check'
    step 'build' npm run --silent build
  else
    echo compiled > dist/.building
    echo 'build: compiling'
    step 'build' npm run --silent compile
  fi
  mv dist/.building dist/.built
fi

if [ -n "$beside" ]; then
  if ! wait "$beside" || [ "$(sh setup/sqlite-module.sh state)" != works ]; then
    beside=''
    echo "SQLite module: failed after $(($(date +%s) - driver_began)) s:" >&2
    tail -n 40 "$logs/driver" >&2
    exit 1
  fi
  beside=''
  echo "SQLite module: done in $(($(date +%s) - driver_began)) s"
fi
printf '%s\n' "$wanted" > "$stamp"
