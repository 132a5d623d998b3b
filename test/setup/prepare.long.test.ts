// prepare.sh on a small checkout of the test's own: it does what is missing, nothing twice, and says why it fails.
import { existsSync, realpathSync } from 'node:fs'
import { chmod, copyFile, mkdir, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { spawnSync } from 'node:child_process'
import t, { type Test } from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { testFolder } from '../helpers/folder.ts'

const PACKAGE = { name: 'checkout', version: '1.0.0', dependencies: { local: 'file:local' } }
/** one dependency, which needs no network */
const LOCK = { name: 'checkout', version: '1.0.0', lockfileVersion: 3, requires: true, packages: { '': PACKAGE, local: { version: '1.0.0' }, 'node_modules/local': { resolved: 'local', link: true } } }

/** what is compiled */
const SOURCES = ['core', 'plugins', 'proxy', 'cli', 'setup', 'test', 'bench']

interface Checkout { readonly root: string, run (path?: string, environment?: Readonly<Record<string, string>>, needs?: readonly string[]): { status: number | null, output: string }, builds (): Promise<number> }

/** A small checkout; its build counts itself, and fails while there is a file `broken`. Its host has all packages. */
async function checkout (t: Test): Promise<Checkout> {
  const root = testFolder(t, {
    'package.json': JSON.stringify({ ...PACKAGE, scripts: { compile: 'if [ -e broken ]; then seq 60; echo the reason; exit 3; fi; mkdir -p dist; echo built >> dist/count' } }),
    'package-lock.json': JSON.stringify(LOCK),
    'tsconfig.json': '{}',
    ...Object.fromEntries(SOURCES.map((folder) => [folder, { 'a.ts': '' }])),
    local: { 'package.json': '{ "name": "local", "version": "1.0.0" }' }
  })
  for (const name of ['prepare.sh', 'sqlite-module.sh', 'temporary-folder.sh']) await copyFile(join(packageRoot, 'setup', name), join(root, 'setup', name))
  await writeFile(join(root, 'setup/install-host-packages.sh'), 'echo "host packages: all present"\n')
  return {
    root,
    run: (path, environment = {}, needs = []) => {
      const { status, stdout, stderr } = spawnSync('/bin/sh', [join(root, 'setup/prepare.sh'), ...needs], { encoding: 'utf8', env: { ...process.env, ...environment, ...path === undefined ? {} : { PATH: path } } })
      return { status, output: stdout + stderr }
    },
    builds: async () => (await readFile(join(root, 'dist/count'), 'utf8').catch(() => '')).split('\n').length - 1
  }
}

/** Gives a file, or a folder with all in it, this time of its last change. */
async function age (path: string, time: Date): Promise<void> {
  if ((await stat(path)).isDirectory()) {
    for (const name of await readdir(path)) await age(join(path, name), time)
  }
  await utimes(path, time, time)
}

/** Makes the SQLite driver of this Node the checkout's one dependency: a package whose script `install` makes it work. */
async function addDriver (root: string, { install, compile }: { readonly install: string, readonly compile: string }): Promise<void> {
  const driver = Number(process.versions.napi) >= 10 ? 'better-sqlite3-napi' : 'better-sqlite3'
  const main = { name: 'checkout', version: '1.0.0', dependencies: { [driver]: 'file:driver' } }
  const packages = { '': main, driver: { version: '1.0.0', hasInstallScript: true }, [`node_modules/${driver}`]: { resolved: 'driver', link: true } }
  await writeFile(join(root, 'package.json'), JSON.stringify({ ...main, scripts: { compile }, allowScripts: { [driver]: true } }))
  await writeFile(join(root, 'package-lock.json'), JSON.stringify({ name: 'checkout', version: '1.0.0', lockfileVersion: 3, requires: true, packages }))
  await mkdir(join(root, 'driver'))
  await writeFile(join(root, 'driver/package.json'), JSON.stringify({ name: driver, version: '1.0.0', main: 'index.js', scripts: { install } }))
}

t.test('a fresh checkout gets its packages and a build, and a second run does nothing', async (t) => {
  const { run, builds } = await checkout(t)
  t.match(run(), { status: 0, output: /npm packages: done in \d+ s\n[^]*build: done/ })
  t.equal(await builds(), 1)
  t.same(run(), { status: 0, output: 'host packages: all present\n' })
  t.equal(await builds(), 1)
})

t.test('a source that changed is built, in whichever folder it is', async (t) => {
  const { root, run, builds } = await checkout(t)
  t.equal(run().status, 0)
  const [before, built] = [new Date(Date.now() - 60_000), new Date(Date.now() - 30_000)]
  for (const folder of SOURCES) {
    for (const each of [...SOURCES, 'package.json', 'package-lock.json', 'tsconfig.json']) await age(join(root, each), before)
    await utimes(join(root, 'dist/.built'), built, built)
    if (folder === SOURCES[0]) t.notMatch(run().output, /build/, 'nothing changed')
    await utimes(join(root, folder, 'a.ts'), new Date(), new Date())
    t.match(run(), { status: 0, output: /build: done/ }, folder)
  }
  t.equal(await builds(), 1 + SOURCES.length)
})

t.test('another lock file installs the packages again', async (t) => {
  const { root, run } = await checkout(t)
  t.equal(run().status, 0)
  await writeFile(join(root, 'package-lock.json'), JSON.stringify(LOCK, undefined, 2))
  t.match(run().output, /npm packages: done/)
  t.notMatch(run().output, /npm packages/)
})

t.test('npm packages that cannot be had come with npm\'s reason, also below a silent npm', async (t) => {
  const { root, run } = await checkout(t)
  await writeFile(join(root, 'package.json'), JSON.stringify({ ...PACKAGE, dependencies: { ...PACKAGE.dependencies, other: 'file:other' } }))
  t.match(run(undefined, { npm_config_loglevel: 'silent' }), { status: 1, output: /npm packages: failed after \d+ s:\n[^]*npm (?:error|ERR!)/ })
})

t.test('without a way to the registry, the last line says so', async (t) => {
  const { root, run } = await checkout(t)
  const main = { ...PACKAGE, dependencies: { other: '1.0.0' } }
  await writeFile(join(root, 'package.json'), JSON.stringify(main))
  const packages = { '': main, 'node_modules/other': { version: '1.0.0', resolved: 'http://127.0.0.1:1/other-1.0.0.tgz' } }
  await writeFile(join(root, 'package-lock.json'), JSON.stringify({ ...LOCK, packages }))
  t.match(run(undefined, { npm_config_fetch_retries: '0', npm_config_registry: 'http://127.0.0.1:1/', npm_config_cache: join(root, 'empty') }),
    { status: 1, output: /npm packages: this host does not reach the registry, and npm's cache lacks some of them\n$/ })
})

t.test('another Node in the same checkout, with another binary interface, installs the packages again', async (t) => {
  const { root, run } = await checkout(t)
  t.equal(run().status, 0)
  await mkdir(join(root, 'bin'))
  // Node but for what it says of its binary interface.
  await writeFile(join(root, 'bin/node'), `#!/bin/sh\ncase "$*" in *versions.modules*) echo linux x64 999 ;; *) exec '${process.execPath}' "$@" ;; esac\n`)
  await chmod(join(root, 'bin/node'), 0o755)
  const path = `${join(root, 'bin')}:${process.env['PATH'] ?? ''}`
  t.match(run(path).output, /npm packages: done/)
  t.notMatch(run(path).output, /npm packages/)
})

t.test('the SQLite module is compiled beside the build where this Node has no binary of it, against the headers beside Node', async (t) => {
  const { root, run } = await checkout(t)
  const install = `echo "module.exports = class {}" > index.js; echo "$npm_config_nodedir $npm_package_config_node_gyp_nodedir" > '${root}/headers'`
  await addDriver(root, { install, compile: 'mkdir -p dist; until [ -e headers ]; do sleep 0.01; done' })
  const { status, output } = run()
  t.equal(status, 0, output)
  t.match(output, /SQLite module: compiling, beside the build[^]*build: done[^]*SQLite module: done in \d+ s/)
  const prefix = dirname(dirname(realpathSync(process.execPath)))
  // Without them it is the business of node-gyp and of whoever configured npm.
  if (existsSync(join(prefix, 'include/node/node_version.h'))) t.equal((await readFile(join(root, 'headers'), 'utf8')).trim(), `${prefix} ${prefix}`)
  t.same(run(), { status: 0, output: 'host packages: all present\n' })
})

t.test('a SQLite module that cannot be compiled comes with the compiler\'s reason', async (t) => {
  const { root, run } = await checkout(t)
  await addDriver(root, { install: 'echo no compiler here >&2; exit 1', compile: 'mkdir -p dist' })
  t.match(run(), { status: 1, output: /SQLite module: failed after \d+ s:\n[^]*no compiler here/ })
})

t.test('a plain npm ci runs no script of a package, and the build compiles the SQLite module', async (t) => {
  const { root } = await checkout(t)
  await addDriver(root, { install: 'echo "module.exports = class {}" > index.js', compile: 'sh setup/sqlite-module.sh' })
  await copyFile(join(packageRoot, '.npmrc'), join(root, '.npmrc'))
  const npm = (...args: readonly string[]): number | null => spawnSync('npm', args, { cwd: root, env: { ...process.env, npm_config_userconfig: '/dev/null' } }).status
  t.equal(npm('ci'), 0)
  t.notOk(existsSync(join(root, 'driver/index.js')))
  t.equal(npm('run', 'compile'), 0)
  t.ok(existsSync(join(root, 'driver/index.js')))
})

for (const need of ['tests', 'systems']) {
  t.test(`what only tests and lint need is installed when it is asked for, and types are checked then: ${need}`, async (t) => {
    const { root, run } = await checkout(t)
    const main = { ...PACKAGE, devDependencies: { check: 'file:check' } }
    const packages = { ...LOCK.packages, '': main, check: { version: '1.0.0', dev: true }, 'node_modules/check': { resolved: 'check', link: true } }
    await writeFile(join(root, 'package.json'), JSON.stringify({ ...main, scripts: { compile: 'mkdir -p dist; echo compiled >> how', build: 'echo checked >> how' } }))
    await writeFile(join(root, 'package-lock.json'), JSON.stringify({ ...LOCK, packages }))
    await mkdir(join(root, 'check'))
    await writeFile(join(root, 'check/package.json'), '{ "name": "check", "version": "1.0.0" }')
    t.equal(run().status, 0)
    t.notOk(existsSync(join(root, 'node_modules/check')))
    t.match(run(undefined, {}, [need]), { status: 0, output: /npm packages of tests and lint: done/ })
    t.ok(existsSync(join(root, 'node_modules/check')))
    t.equal(await readFile(join(root, 'how'), 'utf8'), 'compiled\nchecked\n')
    for (const needs of [[need], []]) t.same(run(undefined, {}, needs), { status: 0, output: 'host packages: all present\n' })
  })
}

t.test('going back to an earlier version, and forward again, leaves compiled files of that version alone', async (t) => {
  const { root } = await checkout(t)
  await rm(join(root, 'local'), { recursive: true })
  const { scripts } = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8')) as { readonly scripts: Readonly<Record<string, string>> }
  // The build as it is, but for what it makes of other sources.
  const build = { ...scripts, 'pages:types': 'true', declarations: 'true', programs: 'true' }
  await writeFile(join(root, 'package.json'), JSON.stringify({ name: 'checkout', version: '1.0.0', type: 'module', scripts: build }))
  for (const path of ['tsconfig.json', 'setup/compile.json', 'setup/compiled-orphans.ts', 'core/package-root.ts']) await copyFile(join(packageRoot, path), join(root, path))
  await symlink(join(packageRoot, 'node_modules'), join(root, 'node_modules'))
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
  const laterOnly = ['plugins/new/index.ts', 'plugins/one/migrations/0002-later.ts']
  const checkOut = async (version: 'earlier' | 'later'): Promise<void> => {
    await write('plugins/one/index.ts', `export const version = '${version}'\n`)
    await write('plugins/one/migrations/0001-first.ts', 'export const up = 1\n')
    for (const path of laterOnly) await (version === 'later' ? write(path, 'export const up = 2\n') : rm(join(root, path)))
    if (version === 'earlier') await rm(join(root, 'plugins/new'), { recursive: true })
  }
  const built = async (): Promise<string[]> => (await readdir(join(root, 'dist/plugins'), { recursive: true })).filter((name) => name.endsWith('.js')).sort()
  const version = async (): Promise<string | undefined> => /earlier|later/.exec(await readFile(join(root, 'dist/plugins/one/index.js'), 'utf8'))?.[0]
  const npm = (script: string): { status: number | null, output: string } => {
    const { status, stdout, stderr } = spawnSync('npm', ['run', '--silent', script], { cwd: root, encoding: 'utf8' })
    return { status, output: stdout + stderr }
  }
  for (const script of ['build', 'compile']) {
    const later = ['a.js', 'new/index.js', 'one/index.js', 'one/migrations/0001-first.js', 'one/migrations/0002-later.js']
    await checkOut('later')
    t.match(npm('build'), { status: 0 })
    t.same([await version(), await built()], ['later', later])
    await checkOut('earlier')
    t.match(npm(script), { status: 0 })
    t.same([await version(), await built()], ['earlier', later.filter((name) => !/new|later/.test(name))], script)
    await checkOut('later')
    t.match(npm('build'), { status: 0 })
    t.same([await version(), await built()], ['later', later], `after ${script}`)
  }
})

t.test('a build that fails shows the end of what it said, and is tried again', async (t) => {
  const { root, run, builds } = await checkout(t)
  await writeFile(join(root, 'broken'), '')
  const { status, output } = run()
  t.equal(status, 1)
  t.match(output, /build: failed after \d+ s:\n[^]*60\nthe reason\n/)
  t.notMatch(output, /\n1\n/, 'not all of it')
  await rm(join(root, 'broken'))
  t.equal(run().status, 0)
  t.equal(await builds(), 1)
})

t.test('without Node.js, or with one that is too old, it says which is needed', async (t) => {
  const { root, run } = await checkout(t)
  await mkdir(join(root, 'bin'))
  await writeFile(join(root, 'bin/node'), '#!/bin/sh\n[ "$1" = --version ] && echo v18.0.0\n[ "$1" != -e ]\n')
  await writeFile(join(root, 'bin/npm'), '#!/bin/sh\nexit 1\n')
  for (const name of ['node', 'npm']) await chmod(join(root, 'bin', name), 0o755)
  t.match(run(`${join(root, 'bin')}:/usr/bin:/bin`), { status: 1, output: /Node\.js 20\.19 or later is needed; this is v18\.0\.0/ })
  await mkdir(join(root, 'none'))
  for (const name of ['dirname', 'mktemp', 'rm']) await copyFile('/bin/busybox', join(root, 'none', name))
  t.match(run(join(root, 'none')), { status: 1, output: /Node\.js 20\.19 or later, with npm, is needed/ })
})
