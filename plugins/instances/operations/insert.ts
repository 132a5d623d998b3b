// Stores the row of a new instance, which reserves its name and its VM's user, and then reserves its parts.
import { createId } from '@paralleldrive/cuid2'
import { nowOrLater } from '../../../core/jobs/now-or-later.ts'
import type { Undo } from '../../../core/undo.ts'
import type { ReadyImage } from '../../images/contract.ts'
import type { BaseContext, Context } from '../context.ts'
import type { Purpose } from '../contract.ts'
import { HostSlotsExhausted, NameTaken } from '../errors.ts'
import { reserveParts } from '../parts/all.ts'
import type { InstanceRecord, InstanceSpec } from '../model/record.ts'
import { findUser } from '../users/find.ts'
import { freeSlots } from '../users/free-slots.ts'
import { removeRow, removeRowLater } from './remove-row.ts'

interface NewRow {
  readonly name: string
  readonly spec: InstanceSpec
  readonly image: Pick<ReadyImage, 'name' | 'digest'>
}

/**
 * Returns the stored row, with every part reserved. Its status is `creating`: until that changes, a crash removes the instance. The steps that take row and parts back are added to `undo`, which
 * the caller runs, even when this rejects.
 * @throws NameTaken, insufficient_resources, and what the parts throw
 */
export async function insert (context: Context, wanted: NewRow & { readonly purpose: Purpose }, undo: Undo): Promise<InstanceRecord> {
  const record = await insertWithUser(context, wanted)
  undo.add(async () => { await removeRow(context, record.id) })
  await reserveParts(context, record, wanted.purpose, undo, async () => await context.spares.giveUpOne())
  return record
}

async function insertWithUser (context: Context, { name, spec, image }: NewRow): Promise<InstanceRecord> {
  for (;;) {
    const record = await insertRow(context, () => name, spec, image)
    if (record !== undefined) return record
    if (!await findUser(context)) throw HostSlotsExhausted(context.settings.vmUserCount)
  }
}

/** Stores the row alone. Its name may depend on its id. Undefined when no user is left for the VM. @throws NameTaken */
export async function insertRow (context: BaseContext, nameOf: (id: string) => string, spec: InstanceSpec, image: Pick<ReadyImage, 'name' | 'digest'>): Promise<InstanceRecord | undefined> {
  // When another create takes the slot in between, the insert fails, and the next free slot is tried.
  for (const slot of freeSlots(context)) {
    const id = createId()
    const record = newRecord(context, id, { name: nameOf(id), spec, image }, slot)
    // When it fails the row may be there all the same: the commit may have been done, and its answer lost.
    const clash = await nowOrLater(async () => await context.repository.insert(record), () => { removeRowLater(context, id) })
    if (clash === undefined) return record
    if (clash === 'name') throw NameTaken(record.name)
  }
  return undefined
}

function newRecord ({ hostId }: BaseContext, id: string, { name, spec, image }: NewRow, slot: number | null): InstanceRecord {
  return {
    id,
    hostId,
    name,
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
    exit: null,
    life: {}
  }
}

/** Waits until all of it has ended, so that no undo begins before; then throws the first failure. */
export async function allDone (work: readonly Promise<unknown>[]): Promise<void> {
  const results = await Promise.allSettled(work)
  const failed = results.find((result) => result.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
