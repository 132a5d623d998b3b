// The walks over what an instance holds, in the order of the one list (list.ts).
import type { Undo } from '../../../core/undo.ts'
import { identityOf, type BaseContext } from '../context.ts'
import type { ImageUse, InstancePart, PartInstance, Purpose, VmShare } from '../contract.ts'
import type { InstanceRecord, InstanceSpec } from '../model/record.ts'
import type { Connection } from './connection.ts'
import { isShortage } from './shortage.ts'

/** The spec of a create, with what the caller names found. @throws not_found, ambiguous, invalid_request, PluginDisabled */
export async function resolveParts (context: BaseContext, spec: InstanceSpec): Promise<InstanceSpec> {
  let resolved = spec
  for (const part of context.parts) resolved = await part.resolve?.(resolved) ?? resolved
  return resolved
}

/** The spec for an instance that is made of a copy. @throws conflict, not_supported */
export async function specForCopy (context: BaseContext, call: string, spec: InstanceSpec, withMemory: boolean): Promise<InstanceSpec> {
  let copied = spec
  for (const part of context.parts) copied = await part.forCopy?.(call, copied, withMemory) ?? copied
  return copied
}

/** The spec of an instance that is taken back to a copy of it. @throws conflict, not_supported */
export function specForReplacement (context: BaseContext, call: string, now: InstanceSpec, then: InstanceSpec, withMemory: boolean): InstanceSpec {
  return context.parts.reduce((spec, part) => part.forReplacement?.(call, now, spec, withMemory) ?? spec, then)
}

/** @throws what a part has to say against an instance's being copied, or its VM's being captured: invalid_state, not_supported */
export function requireCapturable (context: BaseContext, call: string, record: Pick<InstanceRecord, 'name' | 'spec'>, image: ImageUse): void {
  for (const part of context.parts) part.requireCapturable?.(call, record, image)
}

/**
 * Reserves every part for a new row. What takes each back is added to `undo`, which its caller runs when this rejects.
 * @param giveUpOne gives up a VM of the server's own when a part is short that such VMs hold too; false when there is none
 */
export async function reserveParts (context: BaseContext, record: InstanceRecord, purpose: Purpose, undo: Undo, giveUpOne: () => Promise<boolean> = async () => false): Promise<void> {
  const instance = partInstance(context, record)
  for (const part of context.parts) {
    await reserve(part, instance, purpose, giveUpOne)
    undo.add(async () => { await part.release?.(instance) })
  }
}

/** What an instance holds that a VM made ahead does not: its row, which is this VM's now, is released with all of it when this rejects. */
export async function reserveAtClaim (context: BaseContext, record: InstanceRecord): Promise<void> {
  const instance = partInstance(context, record)
  for (const part of context.parts) if (part.reservedAtClaim === true) await part.reserve?.(instance, 'running')
}

async function reserve (part: InstancePart, instance: PartInstance, purpose: Purpose, giveUpOne: () => Promise<boolean>): Promise<void> {
  for (;;) {
    try {
      return await part.reserve?.(instance, purpose)
    } catch (error) {
      // What the server keeps ready for itself must not be in anybody's way.
      if (part.heldByHidden !== true || !isShortage(error) || !await giveUpOne()) throw error
    }
  }
}

/** Asks for another VM of an instance. `disconnectParts` takes it back. @throws insufficient_resources */
export async function admitParts (context: BaseContext, record: InstanceRecord): Promise<void> {
  for (const part of context.parts) await part.admit?.(partInstance(context, record))
}

/** Makes every part ready for the VM that is about to be started. When it rejects, `disconnectParts`, or the release of all, is the caller's affair. */
export async function connectParts (context: BaseContext, record: InstanceRecord): Promise<Connection> {
  const shares: VmShare[] = []
  for (const part of context.parts) shares.push(await part.connect?.(partInstance(context, record)) ?? {})
  return {
    devices: shares.flatMap(({ devices = [] }) => devices),
    disks: shares.flatMap(({ disks = [] }) => disks),
    groups: shares.flatMap(({ groups = [] }) => groups),
    network: shares.find(({ network }) => network !== undefined)?.network
  }
}

/** After the end of a VM. Never rejects. */
export async function disconnectParts (context: BaseContext, record: InstanceRecord): Promise<void> {
  await Promise.all(context.parts.toReversed().map(async (part) => await part.disconnect?.(partInstance(context, record))))
}

/** The same for a caller who need not wait for all of it: what lags goes on when this resolves. */
export async function disconnectPartsBehind (context: BaseContext, record: InstanceRecord): Promise<void> {
  await Promise.all(context.parts.toReversed().map(async (part) => {
    const work = part.disconnect?.(partInstance(context, record))
    if (work === undefined) return
    if (part.lags === true) context.behind.leave(record.id, work)
    else await work
  }))
}

/** For a VM that has not ended, but stays paused. Nobody waits for it but who connects the instance again, or asks for room. */
export function suspendPartsBehind (context: BaseContext, record: InstanceRecord): void {
  const works = context.parts.toReversed().map(async (part) => { await (part.suspend ?? part.disconnect)?.(partInstance(context, record)) })
  context.behind.leave(record.id, Promise.all(works).then(() => {}))
}

/** Gives a VM that was kept what it had before its standby. When it rejects, the end of that VM is the caller's affair. */
export async function resumeParts (context: BaseContext, record: InstanceRecord): Promise<void> {
  for (const part of context.parts) {
    if (part.suspend === undefined) await part.connect?.(partInstance(context, record))
    else await part.resume?.(partInstance(context, record))
  }
}

/** Takes everything from an instance whose VM has ended; its row goes after that. Idempotent. */
export async function releaseParts (context: BaseContext, record: InstanceRecord): Promise<void> {
  for (const part of context.parts.toReversed()) await part.release?.(partInstance(context, record))
}

/** At the start of the server, when the VMs that no row knows have ended. Never rejects. */
export async function retainParts (context: BaseContext, records: readonly InstanceRecord[]): Promise<void> {
  for (const part of context.parts) await part.retain?.(records.map((record) => partInstance(context, record)))
}

/** At the start of the server, once all VMs that run are taken over. Never rejects. */
export async function settleParts (context: BaseContext): Promise<void> {
  for (const part of context.parts.toReversed()) await part.adopted?.()
}

/** What its parts may know of an instance. */
export function partInstance (context: BaseContext, record: InstanceRecord): PartInstance {
  const { id, name, status, spec, handle } = record
  return { id, name, status, spec, handle, user: identityOf(context, record) }
}
