// A network for tests of the instances plugin: it remembers who has an address and who is plugged, and what was asked in the wrong order. It outlives a server, as
// the kernel's part of a real one does.
import type { EgressMode, HostSide, InboundConnection, InboundPort, NetworkAddress, NetworkCounters, NetworkFacts, NetworkLimits, NetworkPort, NetworkService, ProxyPlace } from '../../../plugins/networking/contract.ts'
import { defineError } from '../../../core/errors/define.ts'

/** before, and with a participle after, what the network does; an address that is known already is none */
export type NetworkStep = 'allocate' | 'allocated' | 'plug' | 'plugged' | 'unplug' | 'unplugged' | 'release' | 'released' | 'setEgress' | 'egressSet' | 'setInbound' | 'inboundSet' | 'suspend' | 'suspended' | 'resumePort' | 'portResumed'

export interface ScriptedPort { readonly uid: number | undefined, readonly limits: NetworkLimits, readonly egress: EgressMode }

export interface ScriptedNetworkOptions {
  step (step: NetworkStep): Promise<void>
  /** whether a VM of this instance runs */
  isAlive (instanceId: string): boolean
  hasPolicy (instanceId: string): boolean
}

const Full = defineError('insufficient_resources', 'conflict', () => 'the network is full')

export class ScriptedNetwork implements NetworkService {
  readonly facts: NetworkFacts = { subnet: '10.1.0.0/24', gateway: '10.1.0.1', guestToGuest: false }
  readonly uplink = 'none'
  readonly addresses = new Map<string, NetworkAddress>()
  readonly ports = new Map<string, ScriptedPort>()
  /** `plug <id>` and its like */
  readonly calls: string[] = []
  /** what should never happen */
  readonly faults: string[] = []
  capacity = 100
  /** where those live that call guests; nobody does without it */
  namespace: string | undefined
  hostLink: string | undefined
  hostSide: HostSide | undefined
  readonly openings = new Map<string, readonly InboundPort[]>()
  readonly #options: ScriptedNetworkOptions
  #next = 2

  constructor (options: ScriptedNetworkOptions) {
    this.#options = options
  }

  limitsOf ({ downloadBps, uploadBps }: NetworkLimits): Pick<NetworkLimits, 'downloadBps' | 'uploadBps'> {
    return { ...downloadBps === undefined ? {} : { downloadBps }, ...uploadBps === undefined ? {} : { uploadBps } }
  }

  async allocate (instanceId: string): Promise<NetworkAddress> {
    const known = this.addresses.get(instanceId)
    if (known !== undefined) return known
    await this.#options.step('allocate')
    if (this.addresses.size >= this.capacity) throw Full()
    const last = this.#next++
    const address = { ip: `10.1.0.${last}`, prefix: 24, mac: `02:00:00:00:00:${last.toString(16).padStart(2, '0')}`, gateway: '10.1.0.1', dns: ['10.1.0.1'] }
    this.addresses.set(instanceId, address)
    await this.#options.step('allocated')
    return address
  }

  async setInbound (instanceId: string, ports: readonly InboundPort[]): Promise<void> {
    await this.#options.step('setInbound')
    if (ports.length === 0) this.openings.delete(instanceId)
    else this.openings.set(instanceId, ports)
    await this.#options.step('inboundSet')
  }

  addressOf (instanceId: string): NetworkAddress | undefined {
    return this.addresses.get(instanceId)
  }

  async release (instanceId: string): Promise<void> {
    this.calls.push(`release ${instanceId}`)
    await this.#options.step('release')
    if (this.#options.isAlive(instanceId)) this.faults.push(`the address of ${instanceId} was released while its VM runs`)
    if (this.#options.hasPolicy(instanceId)) this.faults.push(`the address of ${instanceId} was released while its policy is enforced`)
    this.ports.delete(instanceId)
    this.suspended.delete(instanceId)
    this.addresses.delete(instanceId)
    await this.#options.step('released')
  }

  async retainOnly (instanceIds: Iterable<string>): Promise<void> {
    const retained = new Set(instanceIds)
    for (const id of [...this.addresses.keys()]) if (!retained.has(id)) await this.release(id)
  }

  async plug (instanceId: string, uid: number | undefined, limits: NetworkLimits, egress: EgressMode): Promise<NetworkPort> {
    this.calls.push(`plug ${instanceId}`)
    await this.#options.step('plug')
    if (!this.addresses.has(instanceId)) this.faults.push(`${instanceId} was plugged without an address`)
    if (this.#options.isAlive(instanceId)) this.faults.push(`${instanceId} was plugged while its VM runs`)
    this.suspended.delete(instanceId)
    this.ports.set(instanceId, { uid, limits, egress })
    await this.#options.step('plugged')
    return { namespace: '/run/netns/scripted', tap: `tap-${instanceId.slice(0, 8)}` }
  }

  async setEgress (instanceId: string, egress: EgressMode): Promise<void> {
    this.calls.push(`setEgress ${instanceId} ${egress}`)
    await this.#options.step('setEgress')
    const port = this.ports.get(instanceId)
    if (port === undefined) this.faults.push(`${instanceId} was to be mediated without a TAP`)
    else this.ports.set(instanceId, { ...port, egress })
    await this.#options.step('egressSet')
  }

  async mediate (): Promise<void> {}

  async proxyPlace (): Promise<ProxyPlace> {
    if (this.namespace === undefined) throw new Error('nobody runs a proxy here')
    return { namespace: this.namespace, gateway: '10.1.0.1', listeners: [{ kind: 'http', meant: 80, port: 18_080 }, { kind: 'https', meant: 443, port: 18_443 }], dnsPort: 18_053, nameServers: [], denied: [] }
  }

  async unplug (instanceId: string): Promise<void> {
    this.calls.push(`unplug ${instanceId}`)
    await this.#options.step('unplug')
    if (this.#options.isAlive(instanceId)) this.faults.push(`${instanceId} was unplugged while its VM runs`)
    this.ports.delete(instanceId)
    this.suspended.delete(instanceId)
    await this.#options.step('unplugged')
  }

  /** instances whose TAPs are down */
  readonly suspended = new Set<string>()

  async suspend (instanceId: string): Promise<void> {
    this.calls.push(`suspend ${instanceId}`)
    await this.#options.step('suspend')
    if (this.ports.has(instanceId)) this.suspended.add(instanceId)
    await this.#options.step('suspended')
  }

  async resume (instanceId: string): Promise<boolean> {
    this.calls.push(`resume ${instanceId}`)
    await this.#options.step('resumePort')
    const isThere = this.ports.has(instanceId) && this.suspended.delete(instanceId)
    await this.#options.step('portResumed')
    return isThere
  }

  /** what is tracked; an error: the kernel cannot be asked */
  connections: InboundConnection[] | Error = []

  async inbound (): Promise<readonly InboundConnection[]> {
    if (this.connections instanceof Error) throw this.connections
    return this.connections
  }

  async counters (instanceId: string): Promise<NetworkCounters | undefined> {
    return this.ports.has(instanceId) ? { rxBytes: 1000, txBytes: 200 } : undefined
  }
}
