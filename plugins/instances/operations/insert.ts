// Stores the row of a new instance, which reserves its name and the user of its VM, and reserves its parts after that.
import { createId } from '@paralleldrive/cuid2'
import type { Undo } from '../../../core/undo.ts'
import type { ReadyImage } from '../../images/contract.ts'
import type { BaseContext, Context } from '../context.ts'
import type { Purpose } from '../contract.ts'
import { HostSlotsExhausted, NameTaken } from '../errors.ts'
import { reserveParts } from '../parts/all.ts'
import type { InstanceRecord, InstanceSpec } from '../model/record.ts'

/**
 * The stored row, with every part reserved. It says `creating`: until that changes, a crash removes the instance. What takes row and parts back is added to `undo`, which
 * its caller runs, also when this rejects.
 * @throws NameTaken, insufficient_resources, and what the parts have to say
 */
export async function insert (context: Context, name: string, spec: InstanceSpec, image: Pick<ReadyImage, 'name' | 'digest'>, purpose: Purpose, undo: Undo): Promise<InstanceRecord> {
  const giveUpOne = async (): Promise<boolean> => await context.templates.giveUpOne()
  const record = await insertWithUser(context, name, spec, image, giveUpOne)
  undo.add(async () => { await context.repository.remove(record.id) })
  await reserveParts(context, record, purpose, undo, giveUpOne)
  return record
}

async function insertWithUser (context: Context, name: string, spec: InstanceSpec, image: Pick<ReadyImage, 'name' | 'digest'>, giveUpOne: () => Promise<boolean>): Promise<InstanceRecord> {
  for (;;) {
    const record = await insertRow(context, () => name, spec, image)
    if (record !== undefined) return record
    // What the server keeps ready for itself must not be in anybody's way.
    if (!await giveUpOne()) throw HostSlotsExhausted(context.settings.vmUserCount)
  }
}

/** The row alone, under a name that may depend on the id. Undefined when no user is left for its VM. @throws NameTaken */
export async function insertRow (context: BaseContext, nameOf: (id: string) => string, spec: InstanceSpec, image: Pick<ReadyImage, 'name' | 'digest'>): Promise<InstanceRecord | undefined> {
  // A slot that another create takes in between makes the insert fail, and the next free one is tried.
  const taken = new Set([...context.instances.all().map((instance) => instance.record.slot), ...[...context.hidden].map(({ slot }) => slot)])
  const { vmUserCount } = context.settings
  for (let slot = 0; slot < vmUserCount; slot++) {
    if (context.separateUsers && taken.has(slot)) continue
    const record = newRecord(context, nameOf, spec, image, context.separateUsers ? slot : null)
    const clash = await context.repository.insert(record)
    if (clash === undefined) return record
    if (clash === 'name') throw NameTaken(record.name)
  }
  return undefined
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
    exit: null,
    life: {}
  }
}

/** Waits for all of it, so that no undo begins while some of it still works; then throws the first failure. */
export async function allDone (work: readonly Promise<unknown>[]): Promise<void> {
  const results = await Promise.allSettled(work)
  const failed = results.find((result) => result.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
