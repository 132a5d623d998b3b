// The one list of what an instance holds, and the walks over it.
import type { VmSpec } from '../../../core/library/hypervisor.ts'
import { BerthError } from '../../../core/errors/define.ts'
import type { Undo } from '../../../core/undo.ts'
import type { BaseContext } from '../context.ts'
import { HostSlotsExhausted } from '../errors.ts'
import type { InstanceRecord, InstanceSpec } from '../record.ts'
import { address } from './address.ts'
import { devices } from './devices.ts'
import type { ImageUse, InstancePart, Purpose, VmShare } from './part.ts'
import { policy } from './policy.ts'
import { room } from './room.ts'
import { volumes } from './volumes.ts'

/** Room first, since asking for it touches nothing else; a policy after the address that it is for. */
const PARTS: readonly InstancePart[] = [room, address, policy, volumes, devices]
const REVERSED = PARTS.toReversed()

/** What all parts together give a VM. */
export type Connection = Required<Omit<VmShare, 'network'>> & Pick<VmSpec, 'network'>

/** The spec of a create, with what the caller names found. @throws not_found, ambiguous, invalid_request, PluginDisabled */
export async function resolveParts (context: BaseContext, spec: InstanceSpec): Promise<InstanceSpec> {
  let resolved = spec
  for (const part of PARTS) resolved = await part.resolve?.(context, resolved) ?? resolved
  return resolved
}

/** The spec for an instance that is made of a copy. @throws conflict, not_supported */
export async function specForCopy (context: BaseContext, call: string, spec: InstanceSpec, withMemory: boolean): Promise<InstanceSpec> {
  let copied = spec
  for (const part of PARTS) copied = await part.forCopy?.(context, call, copied, withMemory) ?? copied
  return copied
}

/** The spec of an instance that is taken back to a copy of it. @throws conflict, not_supported */
export function specForReplacement (call: string, now: InstanceSpec, then: InstanceSpec, withMemory: boolean): InstanceSpec {
  return PARTS.reduce((spec, part) => part.forReplacement?.(call, now, spec, withMemory) ?? spec, then)
}

/** @throws what a part has to say against an instance's being copied, or its VM's being captured: invalid_state, not_supported */
export function requireCapturable (call: string, record: Pick<InstanceRecord, 'name' | 'spec'>, image: ImageUse): void {
  for (const part of PARTS) part.requireCapturable?.(call, record, image)
}

/**
 * Reserves every part for a new row. What takes each back is added to `undo`, which its caller runs when this rejects.
 * @param giveUpOne gives up a VM of the server's own when a part is short that such VMs hold too; false when there is none
 */
export async function reserveParts (context: BaseContext, record: InstanceRecord, purpose: Purpose, undo: Undo, giveUpOne: () => Promise<boolean> = async () => false): Promise<void> {
  for (const part of PARTS) {
    await reserve(part, context, record, purpose, giveUpOne)
    undo.add(async () => { await part.release?.(context, record) })
  }
}

async function reserve (part: InstancePart, context: BaseContext, record: InstanceRecord, purpose: Purpose, giveUpOne: () => Promise<boolean>): Promise<void> {
  for (;;) {
    try {
      return await part.reserve?.(context, record, purpose)
    } catch (error) {
      // What the server keeps ready for itself must not be in anybody's way.
      if (part.heldByHidden !== true || !isShortage(error) || !await giveUpOne()) throw error
    }
  }
}

function isShortage (error: unknown): boolean {
  return error instanceof BerthError && error.code === HostSlotsExhausted.code
}

/** Asks for another VM of an instance. `disconnectParts` takes it back. @throws insufficient_resources */
export async function admitParts (context: BaseContext, record: InstanceRecord): Promise<void> {
  for (const part of PARTS) await part.admit?.(context, record)
}

/** Makes every part ready for the VM that is about to be started. When it rejects, `disconnectParts`, or the release of all, is the caller's affair. */
export async function connectParts (context: BaseContext, record: InstanceRecord): Promise<Connection> {
  const shares: VmShare[] = []
  for (const part of PARTS) shares.push(await part.connect?.(context, record) ?? {})
  return {
    devices: shares.flatMap(({ devices = [] }) => devices),
    disks: shares.flatMap(({ disks = [] }) => disks),
    groups: shares.flatMap(({ groups = [] }) => groups),
    network: shares.find(({ network }) => network !== undefined)?.network
  }
}

/** After the end of a VM. Never rejects. */
export async function disconnectParts (context: BaseContext, record: InstanceRecord): Promise<void> {
  await Promise.all(REVERSED.map(async (part) => await part.disconnect?.(context, record)))
}

/** The same for a caller who need not wait for all of it: what lags goes on when this resolves. */
export async function disconnectPartsBehind (context: BaseContext, record: InstanceRecord): Promise<void> {
  await Promise.all(REVERSED.map(async (part) => {
    const work = part.disconnect?.(context, record)
    if (work === undefined) return
    if (part.lags === true) context.behind.leave(record.id, work)
    else await work
  }))
}

/** Takes everything from an instance whose VM has ended; its row goes after that. Idempotent. */
export async function releaseParts (context: BaseContext, record: InstanceRecord): Promise<void> {
  for (const part of REVERSED) await part.release?.(context, record)
}

/** At the start of the server, when the VMs that no row knows have ended. Never rejects. */
export async function retainParts (context: BaseContext, records: readonly InstanceRecord[]): Promise<void> {
  for (const part of PARTS) await part.retain?.(context, records)
}

/** At the start of the server, once all VMs that run are taken over. Never rejects. */
export async function settleParts (context: BaseContext): Promise<void> {
  for (const part of REVERSED) await part.adopted?.(context)
}
