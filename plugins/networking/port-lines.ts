// The lines of ip, bridge and tc that make one guest's TAP, and those that remove it. No I/O.
import { BRIDGE, downOf, shaperOf, tapOf } from './names.ts'
import type { AddressRecord, PortSpec } from './repository.ts'

const LATENCY = '50ms'
const SMALLEST_BURST_BYTES = 8 * 1024
const LARGEST_BURST_BYTES = 16 * 2 ** 20
/** burst, as a part of a second: enough for the kernel's timers, too little to change an average */
const BURST_SECONDS = 0.02

export interface PortLines { readonly ip: readonly string[], readonly bridge: readonly string[], readonly tc: readonly string[] }

/** @param uid owner of the TAP: nobody else, save root, may open it */
export function createLines ({ instanceId, ip, mac }: AddressRecord, { limits }: PortSpec, uid: number, bridge: string): PortLines {
  const tap = tapOf(instanceId)
  return {
    ip: [
      `tuntap add dev ${tap} mode tap user ${uid}`,
      `link set dev ${tap} master ${bridge}`,
      ...limits.uploadBps === undefined ? [] : [`link add ${shaperOf(instanceId)} type ifb`],
      ...settleLines({ instanceId, ip, mac }),
      ...limits.uploadBps === undefined ? [] : [`link set dev ${shaperOf(instanceId)} up`],
      // No packet passes before a VMM opens the TAP, which comes after all of this.
      `link set dev ${tap} up`
    ],
    bridge: findLines({ instanceId, mac }, bridge),
    tc: shapingLines(instanceId, limits)
  }
}

/** By which a guest's frames find its TAP: the first bridge has to know which further one they are for. */
function findLines ({ instanceId, mac }: Pick<AddressRecord, 'instanceId' | 'mac'>, bridge: string): string[] {
  return [tapOf(instanceId), ...bridge === BRIDGE ? [] : [downOf(bridge)]].map((port) => `fdb replace ${mac} dev ${port} master static`)
}

/** Settings of an existing TAP. Can be repeated. */
function settleLines ({ instanceId, ip, mac }: Pick<AddressRecord, 'instanceId' | 'ip' | 'mac'>): string[] {
  return [
    // Nothing is learnt and nothing flooded: the bridge knows each guest's MAC, and the gateway its neighbours, from these lines.
    `link set dev ${tapOf(instanceId)} type bridge_slave isolated on learning off flood off mcast_flood off bcast_flood off`,
    `neigh replace ${ip} lladdr ${mac} dev ${BRIDGE} nud permanent`
  ]
}

/** No packet passes a TAP that is down, whoever has it open. */
export function stateLines (instanceId: string, state: 'up' | 'down'): string[] {
  return [`link set dev ${tapOf(instanceId)} ${state}`]
}

interface Repair {
  /** whether its shaper exists too */
  readonly hasShaper: boolean
  /** whether the TAP must be down */
  readonly isDown: boolean
  readonly bridge: string
}

/** Repairs an existing TAP. */
export function repairLines (address: AddressRecord, { limits }: PortSpec, { hasShaper, isDown, bridge }: Repair): PortLines {
  const { instanceId } = address
  const shaper = shaperOf(instanceId)
  return {
    ip: [
      `link set dev ${tapOf(instanceId)} master ${bridge}`,
      ...settleLines(address),
      ...limits.uploadBps === undefined ? [] : [...hasShaper ? [] : [`link add ${shaper} type ifb`], `link set dev ${shaper} up`],
      ...stateLines(instanceId, isDown ? 'down' : 'up')
    ],
    bridge: findLines(address, bridge),
    tc: shapingLines(instanceId, limits)
  }
}

/**
 * Classes, filters and the bridge's entries are removed together with their link.
 * @param spec `undefined`: unknown, so the lines cover every possible one
 */
export function removeLines ({ instanceId, ip }: Pick<AddressRecord, 'instanceId' | 'ip'>, spec: PortSpec | undefined): string[] {
  return [
    `link del dev ${tapOf(instanceId)}`,
    ...spec !== undefined && spec.limits.uploadBps === undefined ? [] : [`link del dev ${shaperOf(instanceId)}`],
    `neigh del ${ip} dev ${BRIDGE}`
  ]
}

function shapingLines (instanceId: string, { downloadBps, uploadBps }: PortSpec['limits']): string[] {
  const tap = tapOf(instanceId)
  const shaper = shaperOf(instanceId)
  return [
    ...downloadBps === undefined ? [] : [`qdisc replace dev ${tap} root ${bucket(downloadBps)}`],
    // The guest's packets go through a device that can queue them: dropping them instead would make TCP's rate oscillate.
    ...uploadBps === undefined ? [] : [
      `qdisc replace dev ${shaper} root ${bucket(uploadBps)}`,
      `qdisc replace dev ${tap} ingress`,
      `filter replace dev ${tap} parent ffff: protocol all prio 1 handle 800::1 u32 match u32 0 0 action mirred egress redirect dev ${shaper}`
    ]
  ]
}

function bucket (bytesPerSecond: number): string {
  const burst = Math.round(Math.min(LARGEST_BURST_BYTES, Math.max(SMALLEST_BURST_BYTES, bytesPerSecond * BURST_SECONDS)))
  return `tbf rate ${bytesPerSecond}bps burst ${burst} latency ${LATENCY}`
}
