import t, { type Test } from 'tap'
import { execFile } from 'node:child_process'
import { lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { chmod, cp, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Value } from 'typebox/value'
import { parse } from 'yaml'
import { packageRoot } from '../../core/package-root.ts'
import { manifest as networking } from '../../plugins/networking/manifest.ts'
import { resolveSettings } from '../../plugins/networking/settings.ts'
import { checkConfig } from '../../proxy/config/load.ts'
import { testFolder } from '../helpers/folder.ts'

const SETUP = fileURLToPath(new URL('../../setup/service/main.js', import.meta.url))
const SYSTEM_UNITS = ['/usr/lib/systemd/system', '/lib/systemd/system']
const UNITS = join(packageRoot, 'systemd/units')
const MOST_EXPOSURE = 2.5

interface Outcome { readonly code: number, readonly output: string }

function run (file: string, ...args: readonly string[]): Promise<Outcome> {
  return new Promise(resolve => {
    execFile(file, [...args], { maxBuffer: 2 ** 24 }, (error, stdout, stderr) => resolve({ code: error === null ? 0 : Number(error.code), output: stdout + stderr }))
  })
}

const setup = async (...args: readonly string[]) => await run(process.execPath, SETUP, ...args)

/** A folder that stands for `/`, as a system has it before. */
async function emptyRoot (t: Test): Promise<string> {
  const root = testFolder(t)
  await mkdir(join(root, 'etc'))
  await mkdir(join(root, 'usr/bin'), { recursive: true })
  return root
}

/** Every path with its mode, and what is in it. Synchronously, as an installation has some 14,000 of them. */
function contents (folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).map(name => {
    const path = join(folder, name)
    const found = lstatSync(path)
    if (found.isSymbolicLink()) return `${path} -> ${readlinkSync(path)}`
    const mode = found.mode.toString(8)
    return found.isDirectory() ? `${path} ${mode}` : `${path} ${mode} ${found.size} ${found.mtimeMs}`
  }).sort()
}

/** Sections of a unit: key → values, in order. */
async function unit (name: string): Promise<Map<string, string[]>> {
  const values = new Map<string, string[]>()
  for (const line of (await readFile(join(UNITS, name), 'utf8')).split('\n')) {
    const [, key, value] = /^(\w+)=(.*)$/.exec(line) ?? []
    if (key !== undefined && value !== undefined) values.set(key, [...values.get(key) ?? [], value])
  }
  return values
}

t.test('install-service --root makes a whole tree, a second one changes nothing, and uninstall-service leaves what was before', async (t) => {
  const root = await emptyRoot(t)
  const before = contents(root)
  const umask = process.umask(0o077)
  const first = await setup('install', '--root', root)
  process.umask(umask)
  t.equal(first.code, 0, first.output)
  const installed = contents(root)
  const program = join(root, 'usr/lib/berth')
  for (const path of ['dist/cli/main.js', 'dist/core/main.js', 'dist/proxy/main.js', 'dist/guest/berth-init', 'dist/plugins/networking/index.js', 'node_modules/better-sqlite3/build/Release/better_sqlite3.node', 'bin/node', 'config/berth.yaml']) {
    t.ok((await stat(join(program, path))).isFile(), path)
  }
  t.same((await readdir(join(program, 'dist'))).sort(), ['cli', 'core', 'guest', 'node_modules', 'plugins', 'proxy', 'setup'])
  t.same((await readdir(join(program, 'node_modules'))).filter(name => name.includes('typescript')), [], 'what only developers need stays out')
  t.same(installed.filter(line => / \d+ \d+ /.test(line) && !/ 100(644|755|600) /.test(line)), [], 'whatever the umask is, all users can read it')
  t.equal((await stat(join(root, 'etc/berth/berth.yaml'))).mode & 0o777, 0o600)
  const version = await run(join(program, 'bin/node'), join(program, 'dist/core/main.js'), '--version')
  t.match(version, { code: 0, output: /^\d+\.\d+/ }, 'the program runs from there')

  await t.test('what an operator wrote stays', async (t) => {
    const file = join(root, 'etc/berth/egress.yaml')
    const written = await readFile(file, 'utf8')
    await writeFile(file, '# mine\n')
    t.match(await setup('install', '--root', root), { code: 0, output: /nothing changed/ })
    t.equal(await readFile(file, 'utf8'), '# mine\n')
    await writeFile(file, written)
  })
  t.same(contents(root).filter(line => !line.includes('/etc/berth/egress.yaml')), installed.filter(line => !line.includes('/etc/berth/egress.yaml')))

  await t.test('files that a newer version does not have any more go with an upgrade', async (t) => {
    await writeFile(join(program, 'dist/core/old.js'), '')
    await writeFile(join(root, 'usr/lib/systemd/system/berth.service'), '# of an older version\n')
    t.match(await setup('install', '--root', root), { code: 0, output: /is installed/ })
    t.notOk((await readdir(join(program, 'dist/core'))).includes('old.js'))
    t.same(contents(root).map(line => line.replace(/ \d+\.?\d*$/, '')), installed.map(line => line.replace(/ \d+\.?\d*$/, '')))
  })

  await t.test('an upgrade by an earlier installer, which was killed before it had placed its program, loses nothing of the record', async (t) => {
    const record = await readFile(join(program, 'installed.json'), 'utf8')
    await rename(program, `${program}.berth-old`)
    t.match(await setup('install', '--root', root), { code: 0 })
    t.equal(await readFile(join(program, 'installed.json'), 'utf8'), record)
  })

  t.match(await setup('uninstall', '--root', root), { code: 0, output: /\/etc\/berth stays/ })
  t.same(contents(root).map(line => line.split(' ')[0]), [...before.map(line => line.split(' ')[0]), ...['', '/berth.yaml', '/egress.yaml'].map(path => join(root, 'etc/berth', path).replace(/\/$/, ''))].sort())
  t.match(await setup('uninstall', '--root', root), { code: 1, output: /holds no installation/ })
})

t.test('systemd-analyze verify finds nothing wrong with any unit, among all units of this system', async (t) => {
  const root = await emptyRoot(t)
  // What the units name must be there: the target of the link to Node, and systemd's own units.
  await mkdir(join(root, process.execPath, '..'), { recursive: true })
  await writeFile(join(root, process.execPath), '')
  await chmod(join(root, process.execPath), 0o755)
  for (const folder of SYSTEM_UNITS) await cp(folder, join(root, 'usr/lib/systemd/system'), { recursive: true, force: false, verbatimSymlinks: true }).catch(() => undefined)
  const before = contents(root)
  const { code, output } = await setup('install', '--root', root)
  t.equal(code, 0, output)
  const units = (await readdir(UNITS)).map(name => join(root, 'usr/lib/systemd/system', name))
  t.ok(units.length >= 8)
  const outcome = await run('systemd-analyze', 'verify', '--man=no', `--root=${root}`, ...units)
  // It names whatever it finds in others' units as well.
  t.same(outcome.output.split('\n').filter(line => line.includes('berth')), [])
  t.equal(outcome.code, 0, outcome.output)

  await t.test('uninstall-service --purge leaves the units of others, and nothing of its own; data that is elsewhere stays, and is named', async (t) => {
    await mkdir(join(root, 'srv/berth'), { recursive: true })
    const config = join(root, 'etc/berth/berth.yaml')
    await writeFile(config, `${await readFile(config, 'utf8')}server:\n  dataDir: /srv/berth\n`)
    t.match(await setup('uninstall', '--root', root, '--purge'), { code: 0, output: /^ {2}\/srv\/berth stays/m })
    t.ok((await stat(join(root, 'srv/berth'))).isDirectory())
    await rm(join(root, 'srv'), { recursive: true })
    t.same(contents(root).map(line => line.split(' ')[0]), before.map(line => line.split(' ')[0]))
  })
})

t.test('systemd-analyze security: the proxy is hardly exposed', async (t) => {
  for (const name of ['berth-egress.service', 'berth.service', 'berth-network.service']) {
    const { output } = await run('systemd-analyze', 'security', '--offline=true', '--no-pager', join(UNITS, name))
    const exposure = Number(/exposure level for \S+: ([\d.]+)/.exec(output)?.[1])
    t.comment(`${name}: ${exposure}`)
    t.ok(exposure > 0, output)
    if (name === 'berth-egress.service') t.ok(exposure <= MOST_EXPOSURE)
  }
})

t.test('the server may load no module: the unit that it asks to load vfio-pci is systemd\'s own', async (t) => {
  const server = await unit('berth.service')
  t.notMatch(server.get('CapabilityBoundingSet')?.join(' '), /CAP_SYS_MODULE/)
  t.match(server.get('SystemCallFilter')?.join(' '), /~.*@module/)
  const found = await Promise.all(SYSTEM_UNITS.map(async folder => await readFile(join(folder, 'modprobe@.service'), 'utf8').catch(() => '')))
  t.match(found.join(''), /^ExecStart=.*modprobe .*%[iI]$/m)
})

t.test('sockets, the proxy\'s configuration and the network agree on names, families and ports', async (t) => {
  const { listen } = checkConfig(parse(await readFile(join(packageRoot, 'systemd/etc/egress.yaml'), 'utf8')))
  const names = (await unit('berth-egress.service')).get('Sockets')?.[0]?.split(' ') ?? []
  t.same([...names].sort(), (await readdir(UNITS)).filter(name => name.endsWith('.socket')).sort())
  const sockets = new Map(await Promise.all(names.map(async name => {
    const values = await unit(name)
    t.equal(values.get('Service')?.[0], 'berth-egress.service')
    const entry: [string, Map<string, string[]>] = [`fd:${values.get('FileDescriptorName')?.[0]}`, values]
    return entry
  })))
  t.same([...sockets.keys()].sort(), [listen.control, listen.dns, `${listen.dns}-udp`, listen.http, listen.https].sort())
  const { plugins: written } = parse(await readFile(join(packageRoot, 'systemd/etc/berth.yaml'), 'utf8'))
  const network = Value.Default(networking.config, structuredClone(written.networking?.config ?? {}))
  if (!Value.Check(networking.config, network)) throw new Error('the settings of the network are no configuration')
  const { cidr, proxy: { httpPort, httpsPort, dnsPort } } = network
  const namespace = (await unit('berth-egress.service')).get('NetworkNamespacePath')?.[0]
  for (const dataDir of ['/var/lib/berth', '/srv/berth']) t.equal(resolveSettings(network, { dataDir, hostId: 'a' }).namespacePath, namespace, `guests of ${dataDir} are where the proxy is`)
  for (const [name, port, kind] of [[listen.http, httpPort, 'ListenStream'], [listen.https, httpsPort, 'ListenStream'], [listen.dns, dnsPort, 'ListenStream'], [`${listen.dns}-udp`, dnsPort, 'ListenDatagram']] as const) {
    const values = sockets.get(name ?? '')
    t.same(values?.get(kind), [`10.100.0.1:${port}`], `${name}`)
    t.equal(values?.get('FreeBind')?.[0], 'yes')
    t.equal(values?.get('NetworkNamespacePath')?.[0], namespace)
  }
  t.match(cidr, /^10\.100\.0\.0\//)
  t.same(sockets.get('fd:control')?.get('ListenStream'), [written.egress.config.proxy.controlSocket])
  t.equal(sockets.get('fd:control')?.get('SocketMode')?.[0], '0600')
})
