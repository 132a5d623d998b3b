// The package that `npm pack` makes, installed as a user would, without a registry.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { clientEnvironment } from './berth.ts'

const execute = promisify(execFile)
const man = ['/usr/bin/man', '/bin/man'].find(existsSync)

/** A copy of this checkout as a build leaves it: to pack changes package.json for a moment, and other tests read that of the checkout. */
async function copyOfCheckout (): Promise<string> {
  // In the checkout, so that files can be links and nothing is copied.
  await mkdir(join(packageRoot, '.cache'), { recursive: true })
  const folder = await mkdtemp(join(packageRoot, '.cache/pack-test-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  await mkdir(join(folder, 'dist'))
  for (const name of ['node_modules', 'dist/cli', 'dist/core', 'dist/setup']) await execute('cp', ['-al', join(packageRoot, name), join(folder, name)])
  await cp(join(packageRoot, 'package.json'), join(folder, 'package.json'), { preserveTimestamps: true })
  return folder
}

/** A user's shell: what the npm that runs these tests hands on is left out. */
const shell = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('npm_')))
const npm = async (folder: string, args: readonly string[], env: NodeJS.ProcessEnv = shell): Promise<string> => (await execute('npm', [...args, '--silent'], { cwd: folder, env })).stdout.trim()

t.test('npm pack gives a client that is installed without a registry and a compiler, is found on PATH, and brings its manual page', async (t) => {
  const checkout = await copyOfCheckout()
  const before = { text: await readFile(join(checkout, 'package.json'), 'utf8'), time: (await stat(join(checkout, 'package.json'))).mtimeMs }
  const packed = join(checkout, await npm(checkout, ['pack']))
  t.strictSame({ text: await readFile(join(checkout, 'package.json'), 'utf8'), time: (await stat(join(checkout, 'package.json'))).mtimeMs }, before, 'the checkout is as it was')
  const { size } = await stat(packed)
  t.ok(size < 5_000_000, `${size} bytes`)

  const folder = await mkdtemp(join(tmpdir(), 'berth-installed-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  const prefix = join(folder, 'prefix')
  // Nothing that compiles is to be found, and npm's cache is empty.
  await npm(folder, ['install', '--global', '--prefix', prefix, '--offline', '--cache', join(folder, 'cache'), packed], { ...shell, CC: '/bin/false', CXX: '/bin/false', npm_config_node_gyp: '/bin/false' })
  const root = join(prefix, 'lib/node_modules/berth')
  const packages = (await readdir(join(root, 'node_modules'))).filter((name) => !name.startsWith('.'))
  t.ok(packages.includes('commander') && !packages.includes('fastify') && !packages.some((name) => name.startsWith('better-sqlite3')), packages.join(' '))

  const env = { ...clientEnvironment(), PATH: `${join(prefix, 'bin')}:${process.env['PATH'] ?? ''}` }
  const berth = async (...args: readonly string[]): Promise<unknown> => await execute('berth', [...args], { env, cwd: folder }).then(({ stdout }) => stdout, ({ code, stderr }: { code: number, stderr: string }) => ({ code, stderr }))
  const { version } = JSON.parse(before.text) as { version: string }
  t.equal(await berth('--version'), `${version}\n`)
  t.match(await berth('--help'), /Usage: berth COMMAND/)
  t.match(await berth('ps', '--url', 'http://127.0.0.1:1'), { code: 6, stderr: /nothing answers there/ })
  t.match(await berth('serve'), { code: 1, stderr: /^berth: serve is a command of the server, and this is the client alone; .*install-service\n$/ })
  // Every command with all that it loads.
  const loaded = await execute(process.execPath, ['-e', `import('${root}/dist/cli/catalogue/all.js').then(async ({ SECTIONS }) => { let count = 0; for (const { commands } of SECTIONS) for (const { load } of commands) { await load(); count++ }; console.log(count) })`], { env })
  t.ok(Number(loaded.stdout) > 70, `${loaded.stdout.trim()} commands`)
  t.match(await readFile(join(prefix, 'share/man/man1/berth.1'), 'utf8'), /^\.TH BERTH 1/)
  if (man !== undefined) t.match((await execute(man, ['--path', 'berth'], { env: { ...env, MANPATH: join(prefix, 'share/man') } })).stdout, /manual\/berth\.1\n$/)
})

t.test('a pack that was killed in the middle is taken back by the next', async (t) => {
  const checkout = await copyOfCheckout()
  const before = await readFile(join(checkout, 'package.json'), 'utf8')
  const step = async (name: string): Promise<unknown> => await execute(process.execPath, [join(checkout, 'dist/setup/package/main.js'), name])
  await step('begin')
  t.notMatch(await readFile(join(checkout, 'package.json'), 'utf8'), /fastify/)
  await step('begin')
  await step('end')
  t.equal(await readFile(join(checkout, 'package.json'), 'utf8'), before)
  await step('end')
  t.equal(await readFile(join(checkout, 'package.json'), 'utf8'), before)
})
