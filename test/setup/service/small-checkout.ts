// A built checkout of a few small files around the real installer, and a scripted systemd with a database: each installation takes milliseconds.
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { cp, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { packageRoot } from '../../../core/package-root.ts'
import type { HostCommands } from '../../../core/contracts/services.ts'
import type * as Install from '../../../setup/service/install.ts'
import type * as Uninstall from '../../../setup/service/uninstall.ts'
import type * as SystemModule from '../../../setup/service/system.ts'
import type * as Run from '../../../core/process/run.ts'

const DIST = join(packageRoot, 'dist')
const EMPTY = ['README.md', 'config/berth.yaml', 'proxy/README.md', 'systemd/README.md', 'systemd/network-namespace', 'systemd/release-control-groups', 'systemd/sysusers.conf', 'systemd/tmpfiles.conf',
  'systemd/etc/egress.yaml', 'plugins/one/README.md', 'dist/cli/main.js', 'dist/core/main.js', 'dist/plugins/one/index.js', 'dist/proxy/main.js', 'dist/guest/berth-init']

export interface Version {
  readonly name: string
  /** of the database, which grows with the versions */
  readonly schema: number
  /** units that other versions may not have */
  readonly units: readonly string[]
}

/** What a system holds besides files. */
export interface World {
  /** version of each unit that runs */
  readonly running: Record<string, string>
  /** schema and writer of the database's content */
  database?: { readonly schema: number }
  readonly copies: { readonly number: number, readonly schema: number }[]
  /** version whose server does not come up */
  broken?: string
  /** the server of another host uses the database */
  isShared?: boolean
}

export interface Checkout {
  readonly folder: string
  install (root: string, before?: (step: string) => Promise<void>, say?: (line: string) => void): Promise<boolean>
  /** @returns what it said */
  uninstall (root: string, options?: { readonly purge?: boolean, readonly before?: (step: string) => Promise<void> }): Promise<readonly string[]>
}

export async function smallCheckout (folder: string, version: Version): Promise<Checkout> {
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), text)
  }
  for (const path of EMPTY) await write(path, `${version.name}\n`)
  for (const name of ['berth.service', 'berth-egress.service', 'berth-egress.socket', ...version.units]) await write(`systemd/units/${name}`, `# ${version.name}\n`)
  // The same in all versions.
  await write('systemd/units/berth-network.service', '# network\n')
  await write('systemd/etc/berth.yaml', 'plugins: { egress: { config: { proxy: { manage: false } } } }\n')
  await write('package.json', JSON.stringify({ type: 'module', version: '0.1.0', engines: { node: '>=20.19' }, ...version }))
  await write('package-lock.json', '{"packages":{}}')
  for (const path of programOf(['setup/service/main.js'])) await cp(join(DIST, path), join(folder, 'dist', path))
  symlinkSync(join(packageRoot, 'node_modules'), join(folder, 'node_modules'))
  const load = async (path: string): Promise<unknown> => await import(pathToFileURL(join(folder, 'dist', path)).href)
  const { install } = await load('setup/service/install.js') as typeof Install
  const { uninstall } = await load('setup/service/uninstall.js') as typeof Uninstall
  const { System } = await load('setup/service/system.js') as typeof SystemModule
  const { HostCommandFailed } = await load('core/process/run.js') as typeof Run
  const fail = (command: string): never => { throw new HostCommandFailed({ command, reason: 'exit', exitCode: 3, signal: undefined, stderr: '' }, 'exited with 3') }
  // The system that this runs on may not be systemd's.
  class ScriptedSystem extends System { override async check (): Promise<void> {} }
  return {
    folder,
    install: async (root, before, say = () => {}) => await install({ root, node: '/usr/bin/node', system: new ScriptedSystem(scriptedCommands(root, fail, before)), say }),
    uninstall: async (root, { purge = false, before } = {}) => {
      const said: string[] = []
      await uninstall({ root, purge, system: new ScriptedSystem(scriptedCommands(root, fail, before)), say: (line) => { said.push(line) } })
      return said
    }
  }
}

/** Compiled files that these import, and these. */
function programOf (paths: readonly string[]): string[] {
  const found = new Set(paths)
  for (const path of found) {
    const text = readFileSync(join(DIST, path), 'utf8')
    for (const [, name = ''] of text.matchAll(/(?:from|import) '(\.[^']+)'/g)) found.add(relative(DIST, join(DIST, dirname(path), name)))
  }
  return [...found]
}

export function worldOf (root: string): World {
  const path = join(root, 'world.json')
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) as World : { running: {}, copies: [] }
}

export function changeWorld (root: string, change: (world: World) => void): void {
  const world = worldOf(root)
  change(world)
  writeFileSync(join(root, 'world.json'), JSON.stringify(world))
}

function scriptedCommands (root: string, fail: (command: string) => never, before?: (step: string) => Promise<void>): HostCommands {
  return {
    async run (file, args) {
      const command = [file, ...args].join(' ')
      await before?.(command)
      if (args.includes('is-active') && !(String(args.at(-1)) in worldOf(root).running)) fail(command)
      return { stdout: args.includes('restore-database') ? restoreDatabase(root, args) : file === 'systemctl' ? systemctl(root, args) : '', stderr: '' }
    }
  }
}

function systemctl (root: string, args: readonly string[]): string {
  const [verb, ...units] = args.filter(arg => !arg.startsWith('--'))
  const isThere = (unit: string): boolean => existsSync(join(root, 'usr/lib/systemd/system', unit))
  for (const unit of units) {
    if (verb === 'enable' && !isThere(unit)) throw new Error(`${unit} does not exist`)
    if (verb === 'disable' && !isThere(unit)) throw new Error(`${unit} does not exist`)
    if (verb === 'stop' && !isThere(unit) && !(unit in worldOf(root).running)) throw new Error(`${unit} is not loaded`)
    if (verb === 'stop') changeWorld(root, ({ running }) => { Reflect.deleteProperty(running, unit) })
    if (verb === 'restart' || (verb === 'start' && !(unit in worldOf(root).running))) start(root, unit)
  }
  return ''
}

function start (root: string, unit: string): void {
  const { name, schema, units } = JSON.parse(readFileSync(join(root, 'usr/lib/berth/package.json'), 'utf8')) as Version
  changeWorld(root, (world) => {
    if (unit === 'berth.service') {
      const { database = { schema } } = world
      if (database.schema > schema) throw new Error('a newer version has changed the database')
      if (database.schema < schema) world.copies.push({ number: (world.copies.at(-1)?.number ?? 0) + 1, schema: database.schema })
      world.database = { schema }
    } else for (const extra of units) world.running[extra] = name
    world.running[unit] = name
  })
  if (unit === 'berth.service' && worldOf(root).broken === name) {
    changeWorld(root, ({ running }) => { Reflect.deleteProperty(running, unit) })
    throw new Error(`${name} does not come up`)
  }
}

function restoreDatabase (root: string, args: readonly string[]): string {
  const wanted = Number(args.at(-1))
  if (Number.isNaN(wanted)) return worldOf(root).copies.map(({ number }) => `${number}  a day\n`).join('')
  if (worldOf(root).isShared === true) throw new Error('the server of host other uses the database: stop that server first')
  changeWorld(root, (world) => {
    const copy = world.copies.find(({ number }) => number === wanted)
    if (copy === undefined || world.database === undefined || 'berth.service' in world.running) throw new Error(`copy ${wanted} cannot be brought back`)
    world.copies.push({ number: (world.copies.at(-1)?.number ?? 0) + 1, schema: world.database.schema })
    world.database = { schema: copy.schema }
  })
  return ''
}

/** Each path of a root with its mode and content; without what is not a file of an installation. */
export function treeOf (root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' }).filter(path => path !== 'world.json').map((path) => {
    const found = lstatSync(join(root, path))
    if (found.isDirectory()) return `${path}/ ${found.mode.toString(8)}`
    return `${path} ${found.isSymbolicLink() ? readlinkSync(join(root, path)) : `${found.mode.toString(8)} ${readFileSync(join(root, path)).toString('base64')}`}`
  }).sort()
}
