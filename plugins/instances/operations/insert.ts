// Stores the row of a new instance, which reserves its name and the user of its VM, and its address after that.
import { createId } from '@paralleldrive/cuid2'
import { BerthError } from '../../../core/errors/define.ts'
import { createUndo } from '../../../core/undo.ts'
import type { ReadyImage } from '../../images/contract.ts'
import type { BaseContext, Context } from '../context.ts'
import { withDevices } from '../devices.ts'
import { HostSlotsExhausted, NameTaken } from '../errors.ts'
import { releaseAddress, reserveAddress } from '../network.ts'
import type { InstanceRecord, InstanceSpec } from '../record.ts'
import { claimRoom } from '../resources.ts'
import { withClaims } from '../volumes/claims.ts'

/**
 * The stored row, which says `creating`: until that changes, a crash removes the instance. Whoever removes it gives its address and its room back.
 * @param active whether it is to have a VM at once
 * @throws NameConflict, insufficient_resources
 */
export async function insert (context: Context, name: string, spec: InstanceSpec, image: Pick<ReadyImage, 'name' | 'digest'>, active: boolean): Promise<InstanceRecord> {
  const record = await insertAddressed(context, name, spec, image)
  return await withDevices(context, await withClaims(context, await withRoom(context, record, active)))
}

async function insertAddressed (context: Context, name: string, spec: InstanceSpec, image: Pick<ReadyImage, 'name' | 'digest'>): Promise<InstanceRecord> {
  for (;;) {
    let shortage: BerthError
    try {
      const record = await insertRow(context, () => name, spec, image)
      if (record !== undefined) return record
      shortage = HostSlotsExhausted(context.settings.vmUserCount)
    } catch (error) {
      // No address is left.
      if (!(error instanceof BerthError) || error.code !== HostSlotsExhausted.code) throw error
      shortage = error
    }
    // What the server keeps ready for itself must not be in anybody's way.
    if (!await context.templates.giveUpOne()) throw shortage
  }
}

/** The same, for a name that may depend on the id. Undefined when no user is left for its VM. */
export async function insertRow (context: BaseContext, nameOf: (id: string) => string, spec: InstanceSpec, image: Pick<ReadyImage, 'name' | 'digest'>): Promise<InstanceRecord | undefined> {
  // A slot that another create takes in between makes the insert fail, and the next free one is tried.
  const taken = new Set([...context.instances.all().map((instance) => instance.record.slot), ...[...context.hidden].map(({ slot }) => slot)])
  const { vmUserCount } = context.settings
  for (let slot = 0; slot < vmUserCount; slot++) {
    if (context.separateUsers && taken.has(slot)) continue
    const record = newRecord(context, nameOf, spec, image, context.separateUsers ? slot : null)
    const clash = await context.repository.insert(record)
    if (clash === undefined) return await withAddress(context, record)
    if (clash === 'name') throw NameTaken(record.name)
  }
  return undefined
}

/** The row goes again when there is no address for it. */
async function withAddress (context: BaseContext, record: InstanceRecord): Promise<InstanceRecord> {
  const undo = createUndo()
  undo.add(async () => { await context.repository.remove(record.id) })
  try {
    await reserveAddress(context, record)
    return record
  } catch (error) {
    for (const failure of await undo.run()) context.log.error({ err: failure, instance: record.id }, 'the row of an instance without an address could not be removed')
    throw error
  }
}

/** The same when the host has no room for it, which no VM of the server's own takes away. */
async function withRoom (context: BaseContext, record: InstanceRecord, active: boolean): Promise<InstanceRecord> {
  const undo = createUndo()
  undo.add(async () => { await context.repository.remove(record.id) })
  undo.add(async () => { await releaseAddress(context, record) })
  try {
    await claimRoom(context, record, active)
    return record
  } catch (error) {
    for (const failure of await undo.run()) context.log.error({ err: failure, instance: record.id }, 'the row of an instance without room could not be removed')
    throw error
  }
}

function newRecord (context: BaseContext, nameOf: (id: string) => string, spec: InstanceSpec, image: Pick<ReadyImage, 'name' | 'digest'>, slot: number | null): InstanceRecord {
  const id = createId()
  return {
    id,
    hostId: context.hostId,
    name: nameOf(id),
    status: 'creating',
    version: 1,
    createdAt: Date.now(),
    image: image.name,
    imageDigest: image.digest,
    spec,
    slot,
    handle: null,
    startedAt: null,
    runningAt: null,
    stoppedAt: null,
    standbyAt: null,
    exit: null
  }
}

/** Waits for all of it, so that no undo begins while some of it still works; then throws the first failure. */
export async function allDone (work: readonly Promise<unknown>[]): Promise<void> {
  const results = await Promise.allSettled(work)
  const failed = results.find((result) => result.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
