// An instance's place in the network, for the operations: an address for as long as it has a row, a TAP for as long as it has a VM.
import type { VmNetwork } from '../../core/contracts/hypervisor.ts'
import { PluginDisabled } from '../../core/errors/common.ts'
import type { GuestNetwork } from '../guest/contract.ts'
import type { NetworkService } from '../networking/contract.ts'
import { identityOf, type BaseContext } from './context.ts'
import { egressModeOf, enforce, lift } from './egress.ts'
import type { InstanceRecord } from './record.ts'

type Networked = Pick<InstanceRecord, 'id' | 'spec'>

/** Gives an instance its address, if it is to have one. @throws insufficient_resources, PluginDisabled */
export async function reserveAddress (context: BaseContext, { id, spec }: Networked): Promise<void> {
  if (spec.network?.enabled === true) await requireNetwork(context).allocate(id)
}

/** Gives the address back; its VM must have ended. Whoever removes a row does this before. Idempotent. */
export async function releaseAddress (context: BaseContext, record: Networked): Promise<void> {
  const { id, spec } = record
  if (spec.network?.enabled !== true) return
  await context.behind.over(id)
  // First: whoever gets the address next is somebody else.
  await lift(context, record)
  await context.network?.release(id)
}

/**
 * Connects the VM that is about to be started, with its egress policy enforced; undefined when it is to have no network. What is there already is replaced.
 * When it rejects, `unplug` or `releaseAddress` is the caller's affair.
 */
export async function plug (context: BaseContext, record: Networked & Pick<InstanceRecord, 'slot'>): Promise<VmNetwork | undefined> {
  const { id, spec } = record
  if (spec.network?.enabled !== true) return undefined
  const network = requireNetwork(context)
  await context.behind.over(id)
  // It has had it since its row is there.
  const { ip, mac } = await network.allocate(id)
  const { enabled, ...limits } = spec.network
  const { namespace, tap } = await network.plug(id, identityOf(context, record)?.uid, { ...limits, vcpus: spec.vcpus }, egressModeOf(record))
  await enforce(context, record, ip)
  return { namespace, tap, mac }
}

/** Disconnects a VM that has ended. Never rejects: a TAP that stays has nobody behind it, and goes with the next plug, the next start of the server, or the instance. */
export async function unplug (context: BaseContext, record: Networked): Promise<void> {
  const { id, spec } = record
  if (spec.network?.enabled !== true) return
  try {
    await Promise.all([lift(context, record), context.network?.unplug(id)])
  } catch (error) {
    context.log.error({ err: error, instance: id }, 'a VM that has ended could not be disconnected from the network')
  }
}

/** The same behind the answer to a caller who need not wait for it: the next `plug` or `releaseAddress` of this instance does. */
export function unplugBehind (context: BaseContext, record: Networked): void {
  context.behind.leave(record.id, unplug(context, record))
}

/** Lets a VM that is plugged, and has not gone on yet, have the policy of the instance that it has become. Whoever gets an error lifts it. @throws egress_unavailable */
export async function mediate (context: BaseContext, record: Networked): Promise<void> {
  if (record.spec.egress === undefined) return
  const network = requireNetwork(context)
  await network.setEgress(record.id, egressModeOf(record))
  await enforce(context, record, (await network.allocate(record.id)).ip)
}

/** At the start of the server: nobody has an address who has no row. Never rejects. */
export async function retainAddresses (context: BaseContext, records: readonly InstanceRecord[]): Promise<void> {
  try {
    await context.network?.retainOnly(records.map(({ id }) => id))
  } catch (error) {
    context.log.error({ err: error }, 'addresses of instances that are no more could not be given back')
  }
}

/** At the start of the server, once all is taken over: an instance without a VM has no TAP. Never rejects. */
export async function unplugResting (context: BaseContext): Promise<void> {
  const resting = context.instances.all().filter(({ record, machine }) => record.handle === null && machine === undefined)
  await Promise.all(resting.map(async ({ record }) => {
    // Asked first, as there may be thousands: only an instance with a TAP has counters.
    if (await isPlugged(context, record)) await unplug(context, record)
  }))
}

/** What the guest is to make of its network device; undefined without one. */
export function guestNetworkOf ({ network }: BaseContext, { id, spec }: Networked): GuestNetwork | undefined {
  const address = spec.network?.enabled === true ? network?.addressOf(id) : undefined
  if (address === undefined) return undefined
  const { ip, prefix, mac, gateway, dns } = address
  return { mac, address: `${ip}/${prefix}`, gateway, dns }
}

async function isPlugged ({ network, log }: BaseContext, { id, spec }: Networked): Promise<boolean> {
  if (spec.network?.enabled !== true) return false
  try {
    return await network?.counters(id) !== undefined
  } catch (error) {
    log.error({ err: error, instance: id }, 'whether an instance is connected to the network could not be found out')
    return false
  }
}

/** An instance may have been created while the plugin was there. */
function requireNetwork ({ network }: BaseContext): NetworkService {
  if (network === undefined) throw PluginDisabled('networking', 'network.enabled')
  return network
}
