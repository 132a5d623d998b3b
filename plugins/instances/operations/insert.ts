// Stores the row of a new instance, which reserves its name and the user of its VM.
import { createId } from '@paralleldrive/cuid2'
import { NameConflict } from '../../../core/errors/common.ts'
import type { ReadyImage } from '../../images/contract.ts'
import type { Context } from '../context.ts'
import { HostSlotsExhausted } from '../errors.ts'
import type { InstanceRecord, InstanceSpec } from '../record.ts'

/** The stored row, which says `creating`: until that changes, a crash removes the instance. @throws NameConflict */
export async function insert (context: Context, name: string, spec: InstanceSpec, image: ReadyImage): Promise<InstanceRecord> {
  // A slot that another create takes in between makes the insert fail, and the next free one is tried.
  const taken = new Set(context.instances.all().map((instance) => instance.record.slot))
  const { vmUserCount } = context.settings
  for (let slot = 0; slot < vmUserCount; slot++) {
    if (context.separateUsers && taken.has(slot)) continue
    const record = newRecord(context, name, spec, image, context.separateUsers ? slot : null)
    const clash = await context.repository.insert(record)
    if (clash === undefined) return record
    if (clash === 'name') throw NameConflict(`name: an instance named ${name} exists already`)
  }
  throw HostSlotsExhausted(vmUserCount)
}

function newRecord (context: Context, name: string, spec: InstanceSpec, image: ReadyImage, slot: number | null): InstanceRecord {
  return {
    id: createId(),
    hostId: context.hostId,
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
    exit: null
  }
}

/** Waits for all of it, so that no undo begins while some of it still works; then throws the first failure. */
export async function allDone (work: readonly Promise<unknown>[]): Promise<void> {
  const results = await Promise.allSettled(work)
  const failed = results.find((result) => result.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
