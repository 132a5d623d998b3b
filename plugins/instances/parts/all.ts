// The walks over what an instance holds, in the order of the one list (list.ts).
import { setImmediate as turn } from 'node:timers/promises'
import { mapInTurns } from '../../../core/jobs/in-turns.ts'
import type { Undo } from '../../../core/undo.ts'
import { identityOf, type BaseContext } from '../context.ts'
import type { CopyWay, ImageUse, InstancePart, PartInstance, Purpose, VmShare } from '../contract.ts'
import type { InstanceRecord, InstanceSpec } from '../model/record.ts'
import type { Connection } from './connection.ts'
import { doLater } from './later.ts'
import { isShortage } from './shortage.ts'

/** The spec of a create, with ids in place of the names that the caller used. @throws not_found, ambiguous, invalid_request, PluginDisabled */
export async function resolveParts (context: BaseContext, spec: InstanceSpec): Promise<InstanceSpec> {
  let resolved = spec
  for (const part of context.parts) resolved = await part.resolve?.(resolved) ?? resolved
  return resolved
}

/** The spec for an instance that is made of a copy. @throws conflict, not_supported */
export async function specForCopy (context: BaseContext, spec: InstanceSpec, how: CopyWay): Promise<InstanceSpec> {
  let copied = spec
  for (const part of context.parts) copied = await part.forCopy?.(copied, how) ?? copied
  return copied
}

/** The spec of an instance that is taken back to a copy of it. @throws conflict, not_supported */
export function specForReplacement (context: BaseContext, now: InstanceSpec, then: InstanceSpec, how: CopyWay): InstanceSpec {
  return context.parts.reduce((spec, part) => part.forReplacement?.(now, spec, how) ?? spec, then)
}

/** @throws the objections of a part to copying an instance, or to capturing its VM: invalid_state, not_supported */
export function requireCapturable (context: BaseContext, call: string, record: Pick<InstanceRecord, 'name' | 'spec'>, image: ImageUse): void {
  for (const part of context.parts) part.requireCapturable?.(call, record, image)
}

/**
 * Reserves every part for a new row. The steps that take the parts back are added to `undo`, which the caller runs when this rejects.
 * @param giveUpOne gives up a VM of the server's own, when a part is short that such VMs hold too; false when there is none
 */
export async function reserveParts (context: BaseContext, record: InstanceRecord, purpose: Purpose, undo: Undo, giveUpOne: () => Promise<boolean> = async () => false): Promise<void> {
  const instance = partInstance(context, record)
  for (const part of context.parts) {
    // Before the step that it undoes: one that rejects may have been done all the same, and its answer lost. What was never reserved is released as well.
    undo.add(async () => { await releaseOrLater(context, part, instance) })
    await reserve(part, instance, purpose, giveUpOne)
  }
}

/** For a row that goes whatever happens: a part that cannot be taken back now is taken back later. @throws what kept it from being taken back now */
async function releaseOrLater (context: BaseContext, part: InstancePart, instance: PartInstance): Promise<void> {
  try {
    await part.release?.(instance)
  } catch (error) {
    doLater(context, `release ${part.name}`, instance.id, async () => { await part.release?.(instance) })
    throw error
  }
}

/** Reserves what an instance holds and a VM made ahead does not. When this rejects, the caller releases the row, which is this VM's by now, with all of its parts. */
export async function reserveAtClaim (context: BaseContext, record: InstanceRecord): Promise<void> {
  const instance = partInstance(context, record)
  for (const part of context.parts) if (part.reservedAtClaim === true) await part.reserve?.(instance, 'running')
}

async function reserve (part: InstancePart, instance: PartInstance, purpose: Purpose, giveUpOne: () => Promise<boolean>): Promise<void> {
  for (;;) {
    try {
      return await part.reserve?.(instance, purpose)
    } catch (error) {
      // VMs that the server keeps ready must not take what an instance needs.
      if (part.heldByHidden !== true || !isShortage(error) || !await giveUpOne()) throw error
    }
  }
}

/** Asks for another VM of an instance. `disconnectParts` takes it back. @throws insufficient_resources */
export async function admitParts (context: BaseContext, record: InstanceRecord): Promise<void> {
  for (const part of context.parts) await part.admit?.(partInstance(context, record))
}

/** Makes every part ready for the VM that is about to be started. When this rejects, the caller calls `disconnectParts`, or releases all parts. */
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

/** The same for a caller who need not wait for all of it: parts that lag are still being disconnected when this resolves. */
export async function disconnectPartsBehind (context: BaseContext, record: InstanceRecord): Promise<void> {
  await Promise.all(context.parts.toReversed().map(async (part) => {
    const work = part.disconnect?.(partInstance(context, record))
    if (work === undefined) return
    if (part.lags === true) context.behind.leave(record.id, work)
    else await work
  }))
}

/** For a VM that stays paused. Only a caller who connects the instance again, or who asks for room, waits for this. */
export function suspendPartsBehind (context: BaseContext, record: InstanceRecord): void {
  const works = context.parts.toReversed().map(async (part) => { await (part.suspend ?? part.disconnect)?.(partInstance(context, record)) })
  context.behind.leave(record.id, Promise.all(works).then(() => {}))
}

/** Gives a kept VM the parts back that it had before its standby. When this rejects, the caller ends the VM. */
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
  const instances = await mapInTurns(records, (record) => partInstance(context, record))
  for (const part of context.parts) {
    await turn()
    await part.retain?.(instances)
  }
}

/** At the start of the server, once all VMs that run are taken over. Never rejects. */
export async function settleParts (context: BaseContext): Promise<void> {
  for (const part of context.parts.toReversed()) {
    await turn()
    await part.adopted?.()
  }
}

/** The facts about an instance that its parts may know. */
export function partInstance (context: BaseContext, record: InstanceRecord): PartInstance {
  const { id, name, status, spec, handle } = record
  return { id, name, status, spec, handle, user: identityOf(context, record) }
}
