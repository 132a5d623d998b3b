// A proxy that somebody else keeps, as systemd does: this server can only try again, and look whether guests can reach it.
import type { HostCommands, Logger } from '../../../core/contracts/services.ts'
import type { NetworkService, ProxyPlace } from '../../networking/contract.ts'
import { EgressUnavailable } from '../errors.ts'
import type { ProxyProcess } from './proxy-process.ts'

export interface ExternalProxyOptions {
  readonly network: Pick<NetworkService, 'proxyPlace'>
  readonly commands: HostCommands
  readonly log: Logger
}

const TIMEOUT_MS = 20_000
/** how `ss` writes a socket that takes connections to every address */
const ANYWHERE = ['0.0.0.0', '*', '[::]']

export class ExternalProxy implements ProxyProcess {
  readonly ranges = undefined
  // Its units may give it longer: nobody here knows them.
  readonly startMs = 20_000
  readonly #options: ExternalProxyOptions
  /** Whether this proxy was seen where guests' connections go. */
  #isSeen = false

  constructor (options: ExternalProxyOptions) {
    this.#options = options
  }

  async ensure (): Promise<void> {
    this.#isSeen = false
  }

  async isFit (): Promise<boolean> {
    return true
  }

  async isThere (): Promise<boolean> {
    return true
  }

  async stop (): Promise<void> {}

  /** Nobody but its sockets says where it listens: those of systemd are there before it is, those of its own since it has taken its first policy. */
  async requireReach (): Promise<void> {
    if (this.#isSeen) return
    const place = await this.#options.network.proxyPlace()
    const { stdout } = await this.#options.commands.run('nsenter', [`--net=${place.namespace}`, 'ss', '--listening', '--numeric', '--no-header', '--tcp'], { timeoutMs: TIMEOUT_MS })
    if (takesAny(place, stdout)) {
      this.#isSeen = true
      return
    }
    const places = place.listeners.map(({ port }) => `${place.gateway}:${port}`).join(', ')
    const why = `nobody listens at ${places} in ${place.namespace}, where the guests are: the units of the proxy must say NetworkNamespacePath=${place.namespace} and these addresses, or plugins.networking.config.namespace, .cidr and .proxy must be as the units are`
    this.#options.log.error({ namespace: place.namespace }, why)
    throw EgressUnavailable(why)
  }
}

/**
 * Whether anybody takes connections of guests. One port is enough: a namespace without the proxy has none of them, and a proxy may leave one of the two protocols out.
 * @param sockets what `ss` prints
 */
function takesAny ({ gateway, listeners }: ProxyPlace, sockets: string): boolean {
  const open = [...sockets.matchAll(/^\S+\s+\d+\s+\d+\s+(\S+):(\d+)\s/gm)].map(([, address = '', port]) => ({ address: address.replace(/%.*/, ''), port: Number(port) }))
  return open.some(({ address, port }) => (address === gateway || ANYWHERE.includes(address)) && listeners.some((listener) => listener.port === port))
}
