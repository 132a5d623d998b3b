// The bridges that TAPs are on. The kernel gives a bridge 1,023 ports: with more guests there are further bridges, each behind a link of the first one, which alone has the gateway's address. So all guests are
// in one network, and what is decided above their frames knows of one bridge only. Nothing further is made before the first one is full.
import { createLocks } from '../../core/jobs/locks.ts'
import { PortsExhausted } from './errors.ts'
import { staticEntries, type Link } from './links.ts'
import { BRIDGE, downOf, furtherBridge, isFurtherBridge, tapOf, upOf } from './names.ts'
import type { AddressRecord } from './repository.ts'
import type { NetworkTools } from './tools.ts'

/** How many TAPs the first bridge and each further one takes, and how many further ones there may be. */
export interface BridgeRoom { readonly first: number, readonly further: number, readonly bridges: number }

// BR_MAX_PORTS of the kernel is 1024, and the first number is not used.
const PORTS = 1023
/** The links take ports, too: one of each further bridge, and as many of the first as there are further ones. */
const ROOM: BridgeRoom = { first: 960, further: PORTS - 1, bridges: PORTS - 960 }

type Guest = Pick<AddressRecord, 'instanceId' | 'mac'>

export class Bridges {
  readonly #tools: NetworkTools
  readonly #gatewayMac: string
  readonly #room: BridgeRoom
  readonly #locks = createLocks()
  readonly #bridgeOf = new Map<string, string>()
  /** number of TAPs */
  readonly #sizes = new Map<string, number>()
  /** those that are known to exist */
  readonly #made = new Set<string>()

  constructor (tools: NetworkTools, gatewayMac: string, room: BridgeRoom = ROOM) {
    this.#tools = tools
    this.#gatewayMac = gatewayMac
    this.#room = room
  }

  /** Takes a port for a guest, on the first bridge that has one. Afterwards the bridge exists. @throws PortsExhausted */
  async take (instanceId: string): Promise<string> {
    const bridge = this.#bridgeOf.get(instanceId) ?? this.#place(instanceId, this.#free())
    if (bridge === BRIDGE) return bridge
    try {
      await this.#ensure(bridge)
    } catch (error) {
      this.giveBack(instanceId)
      throw error
    }
    return bridge
  }

  giveBack (instanceId: string): void {
    const bridge = this.#bridgeOf.get(instanceId)
    if (bridge === undefined) return
    this.#bridgeOf.delete(instanceId)
    this.#sizes.set(bridge, this.#sizeOf(bridge) - 1)
  }

  of (instanceId: string): string {
    return this.#bridgeOf.get(instanceId) ?? BRIDGE
  }

  /** Lines of `bridge` that make the first bridge forget where a guest is; for the others, the end of its TAP does. */
  forgetLines ({ instanceId, mac }: Guest): string[] {
    const bridge = this.of(instanceId)
    return bridge === BRIDGE ? [] : [`fdb del ${mac} dev ${downOf(bridge)} master`]
  }

  /** Finds out on which bridges the guests are, repairs those, and gives a place to the TAPs that have none. The first one exists. */
  async settle (links: ReadonlyMap<string, Link>, guests: readonly Guest[]): Promise<void> {
    for (const known of [this.#bridgeOf, this.#sizes, this.#made]) known.clear()
    const masters = guests.map(({ instanceId }): [string, string | undefined] => [instanceId, links.get(tapOf(instanceId))?.master])
    const isOurs = (master: string | undefined): master is string => master !== undefined && (master === BRIDGE || (isFurtherBridge(master) && links.has(master)))
    for (const [instanceId, master] of masters) if (isOurs(master)) this.#place(instanceId, master)
    const further = [...links.keys()].filter(isFurtherBridge)
    for (const bridge of further) await this.#make(bridge, { bridge: true, link: links.has(upOf(bridge)) })
    for (const [instanceId, master] of masters) if (!isOurs(master)) await this.take(instanceId)
    const macs = new Set(guests.map(({ mac }) => mac))
    for (const bridge of further) {
      const strays = (await staticEntries(this.#tools, downOf(bridge))).filter((mac) => !macs.has(mac))
      await this.#tools.bridge(strays.map((mac) => `fdb del ${mac} dev ${downOf(bridge)} master`))
    }
  }

  #place (instanceId: string, bridge: string): string {
    this.#bridgeOf.set(instanceId, bridge)
    this.#sizes.set(bridge, this.#sizeOf(bridge) + 1)
    return bridge
  }

  #free (): string {
    const { first, further, bridges } = this.#room
    if (this.#sizeOf(BRIDGE) < first) return BRIDGE
    for (let number = 1; number <= bridges; number++) {
      const bridge = furtherBridge(number)
      // The first one may be full of TAPs from before there were others.
      if (this.#sizeOf(bridge) < further && (this.#made.has(bridge) || this.#sizeOf(BRIDGE) + this.#made.size < PORTS)) return bridge
    }
    throw PortsExhausted(first + further * bridges)
  }

  #sizeOf (bridge: string): number {
    return this.#sizes.get(bridge) ?? 0
  }

  async #ensure (bridge: string): Promise<void> {
    if (this.#made.has(bridge)) return
    await this.#locks.hold(bridge, async () => {
      if (!this.#made.has(bridge)) await this.#make(bridge, { bridge: false, link: false })
    })
  }

  /** @param there what exists of it, and is only repaired */
  async #make (bridge: string, there: { readonly bridge: boolean, readonly link: boolean }): Promise<void> {
    const [up, down] = [upOf(bridge), downOf(bridge)]
    await this.#tools.ip([
      ...there.bridge ? [] : [`link add ${bridge} type bridge`],
      `link set dev ${bridge} type bridge stp_state 0 mcast_snooping 0`,
      ...there.link ? [] : [`link add ${up} type veth peer name ${down}`],
      `link set dev ${up} master ${bridge}`,
      // Questions for the gateway's MAC are the one thing that is flooded, and only upward.
      `link set dev ${up} type bridge_slave isolated off learning off flood off mcast_flood off bcast_flood on`,
      `link set dev ${down} master ${BRIDGE}`,
      // To the first bridge it is as a guest: it reaches nobody but the gateway.
      `link set dev ${down} type bridge_slave isolated on learning off flood off mcast_flood off bcast_flood off`,
      ...[bridge, up, down].map((device) => `link set dev ${device} up`)
    ])
    await this.#tools.bridge([`fdb replace ${this.#gatewayMac} dev ${up} master static`])
    this.#made.add(bridge)
  }
}
