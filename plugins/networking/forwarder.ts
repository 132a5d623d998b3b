// Answers DNS queries in the namespace: one dnsmasq for guests at the gateway, and one for the egress proxy, which no guest can keep busy. They outlive the server, as the guests do.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostCommands, Logger, ProcessIdentity } from '../../core/contracts/services.ts'
import { readIfThere } from '../../core/fs/read-if-there.ts'
import { argumentsOf, livesIn, processIds } from '../../core/process/find.ts'
import { endProcess } from '../../core/process/end.ts'
import { isAlive, readIdentity } from '../../core/process/identity.ts'
import { boundLog } from '../../core/process/log-file.ts'
import { TrackedProcess, type ProcessRegister } from '../../core/process/register.ts'
import { spawnBackground } from '../../core/process/spawn.ts'
import { manifest } from './manifest.ts'
import type { Settings } from './settings.ts'

const PROGRAM = 'dnsmasq'
const MOST_LOG_BYTES = 2 ** 20
// systemd-resolved has the real servers in the second file; the first then names only its own address on the host's loopback.
const RESOLVER_FILES: readonly string[] = ['/etc/resolv.conf', '/run/systemd/resolve/resolv.conf']

// Filters of record types, and a limit on TCP connections (20 before), exist since 2.90.
const OPTIONS_SINCE = { major: 2, minor: 90 } as const
const FILTERED = ['SVCB', 'HTTPS'] as const
const MAX_TCP_CONNECTIONS = 200
/**
 * Queries that wait for an answer. One is forgotten after 10 s, so with the default of 50 a second a guest has at most 700 of them here; a search through a full table of 10,000 takes 2 to 3 ms.
 */
const MAX_WAITING = 10_000
/** where the proxy sends its queries: the namespace's own loopback, which no guest reaches */
export const PROXY_DNS = '127.0.0.1'

export interface ForwarderOptions {
  readonly commands: HostCommands
  readonly processes: ProcessRegister
  readonly settings: Settings
  readonly log: Logger
  /** where the host's name servers may stand; absent: at the usual places */
  readonly resolverFiles?: readonly string[]
  /** whom it answers */
  readonly audience: 'guests' | 'proxy'
}

interface Running {
  readonly identity: ProcessIdentity
  readonly argv: readonly string[]
  /** whether it runs in the current namespace of that name */
  readonly isAtHome: boolean
}

export class Forwarder {
  readonly #options: ForwarderOptions
  readonly #track: TrackedProcess
  #identity: ProcessIdentity | undefined
  #hasUplink = false
  #isWanted = false
  /** the resolver's file of the host that it was started with */
  #file: string | undefined

  constructor (options: ForwarderOptions) {
    this.#options = options
    const name = options.audience === 'guests' ? 'DNS forwarder of guests' : 'DNS forwarder of the egress proxy'
    this.#track = new TrackedProcess({ processes: options.processes, plugin: manifest.id, name, identity: () => this.#identity })
  }

  /** Process id; `undefined` while it does not run. */
  get pid (): number | undefined {
    return this.#identity !== undefined && isAlive(this.#identity) ? this.#identity.pid : undefined
  }

  /** Its upstream servers, `address` or `address#port`; other processes in the namespace may use them too. */
  async servers (): Promise<readonly string[]> {
    const { dnsServers } = this.#options.settings
    if (dnsServers.length > 0) return dnsServers
    const file = await this.#resolverFile()
    return file === undefined ? [] : reachable(await readIfThere(file) ?? '')
  }

  /** Adopts the one that runs as it should; ends any other and starts one. */
  async settle (hasUplink: boolean): Promise<void> {
    this.#hasUplink = hasUplink
    this.#isWanted = true
    this.#file = await this.#resolverFile()
    const args = await this.#arguments(this.#file)
    const running = await this.#running()
    const fitting = running.find(({ argv, isAtHome }) => isAtHome && argv.join('\0') === [PROGRAM, ...args].join('\0'))
    for (const { identity } of running) if (identity !== fitting?.identity) await endProcess(identity)
    this.#identity = fitting?.identity ?? await this.#launch(args)
  }

  /** Bounds its log. Starts it again when it has ended, or could not be started; and with another file when the host's name servers have come to stand there: it reads what changes in its own by itself. */
  async tend (): Promise<void> {
    if (!this.#isWanted) return
    const { log, audience } = this.#options
    if (this.pid !== undefined) {
      await boundLog(this.#log, MOST_LOG_BYTES)
      const file = await this.#resolverFile()
      if (file === undefined || file === this.#file) return
      log.info({ audience, file }, 'the name servers of the host stand elsewhere; the DNS forwarder of the namespace is started again with them')
      return await this.settle(this.#hasUplink)
    }
    log.error({ audience }, 'the DNS forwarder of the namespace does not run; it is started again')
    this.#track.ended('has ended')
    await this.settle(this.#hasUplink)
    if (this.#identity !== undefined) this.#track.started()
  }

  async end (): Promise<void> {
    this.#isWanted = false
    this.#identity = undefined
    for (const { identity } of await this.#running()) await endProcess(identity)
  }

  // Found by its arguments, not by a note in a file: whoever started it, wherever that start was interrupted, and in whatever namespace it runs.
  async #running (): Promise<Running[]> {
    const mark = this.#mark()
    const pids = await processIds()
    return (await Promise.all(pids.map(async (pid) => {
      const argv = await argumentsOf(pid)
      const identity = argv[0] === PROGRAM && argv.includes(mark) ? readIdentity(pid) : undefined
      return identity === undefined ? [] : [{ identity, argv, isAtHome: await livesIn(pid, this.#options.settings.namespacePath) }]
    }))).flat()
  }

  /** The argument that marks this data folder's forwarder. */
  #mark (): string {
    return `--pid-file=${join(this.#folder(), `${this.#name()}.pid`)}`
  }

  #name (): string {
    return this.#options.audience === 'guests' ? 'dns' : 'dns-proxy'
  }

  #folder (): string {
    return join(this.#options.settings.dataDir, 'networking')
  }

  get #log (): string {
    return join(this.#folder(), `${this.#name()}.log`)
  }

  async #launch (args: readonly string[]): Promise<ProcessIdentity | undefined> {
    const { settings, log } = this.#options
    await mkdir(this.#folder(), { recursive: true, mode: 0o700 })
    await boundLog(this.#log, MOST_LOG_BYTES)
    const { identity, ended } = await spawnBackground({ file: 'nsenter', args: [`--net=${settings.namespacePath}`, PROGRAM, ...args], folder: '/', log: this.#log })
    if (identity === undefined) log.error({ problem: await ended }, 'the DNS forwarder could not be started')
    return identity
  }

  /** The file with name servers of the host that can be reached; undefined also when they are of no use. */
  async #resolverFile (): Promise<string | undefined> {
    const { settings, resolverFiles = RESOLVER_FILES } = this.#options
    if (settings.dnsServers.length > 0 || !this.#hasUplink) return undefined
    for (const file of resolverFiles) {
      if (reachable(await readIfThere(file) ?? '').length > 0) return file
    }
    return undefined
  }

  async #arguments (file: string | undefined): Promise<string[]> {
    const { settings, log, audience } = this.#options
    const servers = settings.dnsServers.map((server) => `--server=${server}`)
    if (servers.length === 0 && file === undefined && this.#hasUplink && audience === 'guests') {
      log.warn('the host names no DNS server that guests could reach: set plugins.networking.config.dns.servers')
    }
    return [
      '--keep-in-foreground', '--conf-file=/dev/null', this.#mark(), '--log-facility=-', '--user=nobody', '--group=nogroup',
      ...await newOptions(this.#options.commands), '--bind-interfaces', `--listen-address=${audience === 'guests' ? settings.gateway : PROXY_DNS}`,
      '--no-hosts', '--cache-size=2000', `--dns-forward-max=${MAX_WAITING}`,
      // Without any server every query is refused at once, which is better than silence.
      ...file === undefined ? ['--no-resolv', ...servers] : [`--resolv-file=${file}`]
    ]
  }
}

/**
 * Answers contain no keys for an encrypted server name, and no HTTP/3: neither works through the proxy, and a client would only try in vain. This applies to all guests, whatever
 * their mode: the mode can change while they run, and clients cache answers.
 */
async function newOptions (commands: HostCommands): Promise<string[]> {
  const { stdout } = await commands.run(PROGRAM, ['--version'])
  const [, major = '0', minor = '0'] = /version (\d+)\.(\d+)/.exec(stdout) ?? []
  const knows = Number(major) > OPTIONS_SINCE.major || (Number(major) === OPTIONS_SINCE.major && Number(minor) >= OPTIONS_SINCE.minor)
  return knows ? [...FILTERED.map((type) => `--filter-rr=${type}`), `--max-tcp-connections=${MAX_TCP_CONNECTIONS}`] : []
}

/** The servers that a resolver's file names and that are not on the host's own loopback. */
function reachable (text: string): string[] {
  return [...text.matchAll(/^[\t ]*nameserver[\t ]+((?!127\.)\d+\.[\d.]+)[\t\r ]*$/gm)].map(([, address = '']) => address)
}
