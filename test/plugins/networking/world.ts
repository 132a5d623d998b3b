// A small world of namespaces for the networking tests: a "host" in which the plugin runs its commands, an outside, and guests behind real TAPs.
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Knex } from 'knex'
import { pino } from 'pino'
import type { Test } from 'tap'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { migratePlugin } from '../../../core/db/migrate.ts'
import { openDatabase } from '../../../core/db/open.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import { packageRoot } from '../../../core/package-root.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { createProcessRegister } from '../../../core/process/register.ts'
import type { BridgeRoom } from '../../../plugins/networking/bridges.ts'
import type { NetworkAddress, NetworkPort } from '../../../plugins/networking/contract.ts'
import { missingPrivileges } from '../../../plugins/networking/privileges.ts'
import { AddressRepository } from '../../../plugins/networking/repository.ts'
import { Networking } from '../../../plugins/networking/service.ts'
import { resolveSettings } from '../../../plugins/networking/settings.ts'
import type { NetworkingConfig } from '../../../plugins/networking/manifest.ts'
import { eventually } from '../../helpers/eventually.ts'
import { compileProgram } from '../../helpers/program.ts'
import type { Order } from './programs/agent.ts'

const runFile = promisify(execFile)
const MIGRATIONS = new URL('../../../plugins/networking/migrations/', import.meta.url)
const AGENT = fileURLToPath(new URL('programs/agent.js', import.meta.url))
const FAKE_GUEST = join(packageRoot, 'test/plugins/networking/programs/fake-guest.c')
const TOOLS = ['ip', 'nft', 'tc', 'conntrack', 'dnsmasq', 'sysctl', 'cc']

/** Why networks cannot be tested here; `false` when they can. */
export function skipReason (): string | false {
  const missing = missingPrivileges()
  if (missing !== undefined) return missing
  const tool = TOOLS.find((name) => !['/usr/sbin', '/sbin', '/usr/bin', '/bin', '/usr/local/bin'].some((folder) => existsSync(join(folder, name))))
  return tool === undefined ? false : `the command ${tool} is missing`
}

/** What a test says of the configuration. */
export type Changes = Partial<Omit<NetworkingConfig, 'dns'>> & { readonly dns?: Partial<NetworkingConfig['dns']> }

export interface Agent {
  ask (order: Order): Promise<string>
  end (): Promise<void>
}

export interface RawGuest {
  /** bytes of whole Ethernet frames */
  send (...frames: readonly Buffer[]): void
  /** frames that came out of the TAP, as hex */
  readonly received: readonly string[]
  /** Resolves with the first frame, of before or later, that `wanted` accepts. */
  frame (wanted: (hex: string) => boolean): Promise<string>
  end (): Promise<void>
}

export interface Machine extends Agent {
  readonly namespace: string
  readonly address: NetworkAddress
}

export class World {
  readonly prefix = `bnt-${randomBytes(4).toString('hex')}`
  readonly host = `${this.prefix}-host`
  readonly outside = `${this.prefix}-out`
  /** the plugin's own */
  readonly namespace = `${this.prefix}-net`
  readonly folder: string
  /** run in the "host" */
  readonly commands: HostCommands
  readonly real = createHostCommands()
  readonly #undo: (() => Promise<unknown>)[] = []
  readonly #abandoned = new Set<Networking>()
  #guests = 0
  hostAddresses: readonly string[] = []
  /** where the host's name servers may stand; absent: at the usual places */
  resolverFiles: readonly string[] | undefined
  readonly bridgeRoom: BridgeRoom | undefined

  constructor (folder: string, bridgeRoom: BridgeRoom | undefined) {
    this.folder = folder
    this.bridgeRoom = bridgeRoom
    this.commands = { run: async (file, args, options) => await this.real.run('nsenter', [`--net=/run/netns/${this.host}`, file, ...args], options) }
  }

  async ip (...args: readonly string[]): Promise<string> {
    return (await runFile('ip', [...args])).stdout
  }

  /** A command in a namespace; its output. */
  async in (namespace: string, file: string, ...args: readonly string[]): Promise<string> {
    return (await runFile('nsenter', [`--net=/run/netns/${namespace}`, file, ...args])).stdout
  }

  async addNamespace (name: string): Promise<void> {
    await this.ip('netns', 'add', name)
    this.#undo.push(async () => { await endNamespace(name) })
    await this.ip('-n', name, 'link', 'set', 'lo', 'up')
  }

  later (step: () => Promise<unknown>): void {
    this.#undo.push(step)
  }

  async end (): Promise<void> {
    for (let step = this.#undo.pop(); step !== undefined; step = this.#undo.pop()) await step()
    await endNamespace(this.namespace)
    await rm(this.folder, { recursive: true, force: true })
  }

  /** The outside: 198.51.100.2, which the host reaches through `wan`. */
  async addOutside (): Promise<void> {
    await this.addNamespace(this.outside)
    await this.ip('-n', this.host, 'link', 'add', 'wan', 'type', 'veth', 'peer', 'name', 'wan', 'netns', this.outside)
    for (const [namespace, address] of [[this.host, '198.51.100.1/24'], [this.outside, '198.51.100.2/24']] as const) {
      await this.ip('-n', namespace, 'address', 'add', address, 'dev', 'wan')
      await this.ip('-n', namespace, 'link', 'set', 'wan', 'addrgenmode', 'none', 'up')
    }
    // Its routes and addresses say so until then, which is no change of the plugin's.
    await eventually('both ends of wan have a carrier', async () => (await Promise.all([this.host, this.outside].map(async (namespace) => await this.ip('-n', namespace, 'link', 'show', 'wan', 'up')))).every((text) => text.includes('state UP')))
    await this.ip('-n', this.host, 'route', 'add', 'default', 'via', '198.51.100.2')
    this.hostAddresses = ['198.51.100.1']
  }

  /** A DNS server outside that answers every question with 203.0.113.7; its address. */
  async addDns (more: readonly string[] = []): Promise<string> {
    const server = '198.51.100.2'
    // A file for its log, which /dev/null is to it, it would give to its own user.
    this.child(this.outside, ['dnsmasq', '--keep-in-foreground', '--conf-file=/dev/null', '--pid-file=', '--no-resolv', '--no-hosts', '--log-facility=-', '--address=/#/203.0.113.7', `--listen-address=${server}`, '--bind-interfaces', ...more])
    const agent = await this.agent(this.outside)
    // It says nowhere that it is ready.
    for (let attempt = 0; await agent.ask({ do: 'resolve', server, name: 'ready.test', timeoutMs: 2000 }) !== '203.0.113.7'; attempt++) {
      if (attempt === 200) throw new Error('the DNS server did not start')
      await delay(10)
    }
    await agent.end()
    return server
  }

  /** All that guests have in the plugin's namespace: devices, queues, entries of the bridge, neighbours, connections, elements of sets. */
  async census (): Promise<string[]> {
    const net = this.namespace
    const of = async (kind: string, file: string, ...args: readonly string[]): Promise<string[]> =>
      (await this.in(net, file, ...args)).split('\n').filter((line) => line.trim() !== '').map((line) => `${kind}: ${line.trim()}`)
    const rules = JSON.parse(await this.in(net, 'nft', '--json', 'list', 'ruleset')) as { nftables: { set?: { table: string, name: string, elem?: unknown[] } }[] }
    const elements = rules.nftables.flatMap(({ set }) => set === undefined || ['metadata', 'denied', 'named', 'internal', 'opened', 'askers', 'proxy_askers', 'streams', 'callers', 'mediated_ports', 'proxy_ports'].includes(set.name)
      ? []
      : (set.elem ?? []).map((element) => `element: ${set.table} ${set.name} ${JSON.stringify(element)}`))
    return [
      ...(await of('link', 'ip', '-brief', 'link')).map((line) => line.split(/\s+/).slice(0, 2).join(' ').replace(/@.*/, '')),
      ...await of('queue', 'tc', 'qdisc', 'show'),
      ...(await of('fdb', 'bridge', 'fdb', 'show')).filter((line) => line.includes('static')),
      ...(await of('neighbour', 'ip', 'neigh', 'show', 'nud', 'permanent')).filter((line) => line.includes('berth0')),
      ...(await of('connection', 'conntrack', '--dump')).filter((line) => line.includes('=10.100.') && !line.includes('src=10.100.0.1 ')),
      ...elements
    ].sort()
  }

  async openDatabase (): Promise<Knex> {
    const database = openDatabase(`sqlite:${join(this.folder, 'test.db')}`)
    await migratePlugin(database, 'networking', MIGRATIONS)
    return database
  }

  /** The plugin's service, as a server with this data folder would have it. */
  async open (config: Changes = {}, hostId = 'host-a', commands = this.commands): Promise<Networking> {
    const database = await this.openDatabase()
    this.later(async () => { await database.destroy() })
    const settings = resolveSettings(configOf({ namespace: this.namespace, ...config }), { dataDir: this.folder, hostId })
    const network = new Networking({
      settings, commands, processes: createProcessRegister(), log: pino({ level: 'silent' }), hostAddresses: () => this.hostAddresses, repository: new AddressRepository(database, hostId, settings.cidr), ...this.bridgeRoom === undefined ? {} : { bridgeRoom: this.bridgeRoom }, ...this.resolverFiles === undefined ? {} : { resolverFiles: this.resolverFiles }
    })
    this.later(async () => { if (!this.#abandoned.has(network)) await network.close(true) })
    await network.open()
    return network
  }

  /** As if its server had been killed: it does nothing any more, and what it made stays. */
  async abandon (network: Networking): Promise<void> {
    this.#abandoned.add(network)
    await network.abandon()
  }

  /** A program in a namespace that opens sockets. */
  async agent (namespace: string): Promise<Agent> {
    const child = this.#start(namespace, [process.execPath, AGENT])
    const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    return {
      async ask (order) {
        child.stdin.write(`${JSON.stringify(order)}\n`)
        const { value, done } = await answers.next()
        if (done === true) throw new Error('the agent has ended')
        return JSON.parse(value) as string
      },
      async end () { await endChild(child) }
    }
  }

  /** A guest of which the test writes each frame itself. */
  async raw (port: NetworkPort): Promise<RawGuest> {
    const child = await this.#startGuest(port, ['raw'])
    const received: string[] = []
    const waiting = new Set<() => void>()
    child.lines.on('line', (line) => {
      received.push(line)
      for (const look of waiting) look()
    })
    return {
      received,
      send (...frames) { child.process.stdin.write(frames.map((frame) => `${frame.toString('hex')}\n`).join('')) },
      frame: (wanted) => new Promise((resolve, reject) => {
        const look = (): void => {
          const found = received.find(wanted)
          if (found === undefined) return
          clearTimeout(timer)
          waiting.delete(look)
          resolve(found)
        }
        const timer = setTimeout(() => { waiting.delete(look); reject(new Error('no such frame came')) }, 15_000)
        waiting.add(look)
        look()
      }),
      end: async () => { await endChild(child.process) }
    }
  }

  /** A guest with sockets of its own: a namespace that is joined to the TAP as a VM's kernel would be. */
  async machine (port: NetworkPort, address: NetworkAddress): Promise<Machine> {
    const namespace = `${this.prefix}-g${this.#guests++}`
    await this.addNamespace(namespace)
    const child = await this.#startGuest(port, ['link', `/run/netns/${namespace}`])
    await this.ip('-n', namespace, 'link', 'set', 'eth0', 'address', address.mac, 'up')
    await this.ip('-n', namespace, 'address', 'add', `${address.ip}/${address.prefix}`, 'dev', 'eth0')
    await this.ip('-n', namespace, 'route', 'add', 'default', 'via', address.gateway)
    const agent = await this.agent(namespace)
    return {
      namespace,
      address,
      ask: agent.ask,
      async end () {
        await agent.end()
        await endChild(child.process)
      }
    }
  }

  async #startGuest (port: NetworkPort, args: readonly string[]): Promise<{ process: ReturnType<World['child']>, lines: ReturnType<typeof createInterface> }> {
    const program = join(this.folder, 'fake-guest')
    if (!existsSync(program)) await writeFile(program, await compileProgram(await readFile(FAKE_GUEST, 'utf8')), { mode: 0o755 })
    const child = this.#start(this.namespace, [program, port.tap, ...args])
    const lines = createInterface({ input: child.stdout })
    const [first] = await once(lines, 'line')
    if (first !== 'ready') throw new Error(`the guest said ${String(first)}`)
    return { process: child, lines }
  }

  /** A long-lived program in a namespace; the end of the world ends it. */
  child (namespace: string, command: readonly string[]) {
    return this.#start(namespace, command)
  }

  #start (namespace: string, command: readonly string[]) {
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'nsenter', `--net=/run/netns/${namespace}`, ...command], { stdio: ['pipe', 'pipe', 'inherit'] })
    // what is written to a program that has ended
    child.stdin.on('error', (error) => { if (!hasCode(error, 'EPIPE')) throw error })
    this.later(async () => { await endChild(child) })
    return child
  }
}

/** Where two guests are that are plugged one after the other, by what is said of the room on bridges. What holds for guests must hold in each. */
export const PLACES: Readonly<Record<string, BridgeRoom | undefined>> = {
  'on the first bridge': undefined,
  'on a further bridge': { first: 0, further: 100, bridges: 1 },
  'on two bridges': { first: 1, further: 1, bridges: 9 }
}

/** A test of what holds wherever guests are. */
export function inEachPlace (work: (t: Test, bridgeRoom?: BridgeRoom) => Promise<void>): (t: Test) => Promise<void> {
  return async (t) => {
    for (const [place, bridgeRoom] of Object.entries(PLACES)) await t.test(place, async (t) => { await work(t, bridgeRoom) })
  }
}

/** A world that ends with the test. @param bridgeRoom absent: the real one */
export async function createWorld (t: Pick<Test, 'teardown'>, bridgeRoom?: BridgeRoom): Promise<World> {
  const world = new World(await mkdtemp(join(tmpdir(), 'berth-net-')), bridgeRoom)
  // A test that is asked to end has no teardown.
  const interrupted = (): void => { void world.end().finally(() => process.exit(1)) }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, interrupted)
  t.teardown(async () => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.removeListener(signal, interrupted)
    await world.end()
  })
  await world.addNamespace(world.host)
  return world
}

/** A whole config, of which a test says only what it is about. Closed unless it says otherwise. */
export function configOf ({ dns, ...changes }: Changes): NetworkingConfig {
  return {
    cidr: '10.100.0.0/16',
    uplink: 'none',
    deniedNetworks: [],
    allowPrivate: [],
    dns: { servers: [], queriesPerSecond: 50, ...dns },
    proxy: { httpPort: 18_080, httpsPort: 18_443, dnsPort: 18_053, furtherPorts: 18_500 },
    bandwidth: {},
    connectionsPerGuest: 16_384,
    ...changes
  }
}

async function endChild (child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}

async function endNamespace (name: string): Promise<void> {
  if (!existsSync(`/run/netns/${name}`)) return
  const { stdout } = await runFile('ip', ['netns', 'pids', name])
  for (const pid of stdout.split('\n').filter((line) => line !== '').map(Number)) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch (error) {
      if (!hasCode(error, 'ESRCH')) throw error
    }
  }
  await runFile('ip', ['netns', 'delete', name])
}
