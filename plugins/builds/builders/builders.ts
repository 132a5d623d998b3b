// The builders of this host: cache disks with a name, each used by one build at a time.
//
// A builder's row names its disk. After a kill between any two steps, the row says what was going on, and the next start of the server resumes it; disks that no row names
// are removed then.
import { createId } from '@paralleldrive/cuid2'
import { InvalidRequest, NotFound } from '../../../core/errors/common.ts'
import { wantedPage, type Found } from '../../../core/http/list.ts'
import { lookupStored } from '../../../core/http/lookup.ts'
import type { Context } from '../context.ts'
import { BuilderBusy, BuilderExists } from '../errors.ts'
import { DISK_PREFIX, VOLUME_OWNER, type BuilderRecord } from './record.ts'
import type { BuilderView, CreateBuilder, ListBuildersQuery } from './schemas.ts'
import { builderView } from './view.ts'

/** A builder that a caller asks for. */
export type WantedBuilder = Omit<CreateBuilder, 'disk_size_gb'> & { readonly diskSizeGb?: number }

export interface Builders {
  create (wanted: WantedBuilder): Promise<BuilderRecord>
  /** @throws invalid_request */
  list (query: ListBuildersQuery): Promise<Found<BuilderRecord>>
  /** By id, or the beginning of one. @throws not_found, ambiguous */
  get (ref: string): Promise<BuilderRecord>
  view (record: BuilderRecord): BuilderView
  /** @throws builder_busy while a build uses it or waits for it */
  delete (ref: string): Promise<void>
  /** Gives it a new disk; returns before that is done. @throws builder_busy while a build uses it */
  prune (ref: string): Promise<BuilderRecord>
  /** Resumes what an earlier server left. */
  recover (): Promise<void>
  /** Resolves when no disk is being made or removed any more. */
  close (): Promise<void>
}

export function createBuilders (context: Context): Builders {
  const { builders, locks } = context
  const pruning = new Set<Promise<void>>()
  const begin = (record: BuilderRecord): void => {
    const work: Promise<void> = replaceDisk(context, record).finally(() => pruning.delete(work))
    pruning.add(work)
  }
  const get = async (ref: string): Promise<BuilderRecord> => await lookupStored(builders, ref, { what: 'builder' })
  // Within the lock only by the full id: what a prefix means may have changed meanwhile.
  const whole = async (id: string): Promise<BuilderRecord> => {
    const record = await builders.find(id)
    if (record === undefined) throw NotFound('builder', id)
    return record
  }
  return {
    get,
    list: async ({ name, status, tags, ...page }) => await builders.page({ ...name === undefined ? {} : { name }, ...status === undefined ? {} : { status }, ...tags === undefined ? {} : { tags } }, wantedPage(page)),
    view: (record) => builderView(record, context.queue),
    create: async (body) => await create(context, body),

    async delete (ref) {
      const { id } = await get(ref)
      await locks.hold(id, async () => {
        const record = await whole(id)
        claim(context, record)
        await remove(context, record)
      })
    },

    async prune (ref) {
      const { id } = await get(ref)
      return await locks.hold(id, async () => {
        const record = await whole(id)
        claim(context, record, { mayHaveWaiting: true })
        try {
          await builders.setStatus(id, 'pruning')
        } catch (error) {
          context.queue.unblock(id)
          throw error
        }
        begin(record)
        return { ...record, status: 'pruning' }
      })
    },

    async recover () {
      for (const record of await builders.all()) {
        if (record.status === 'pruning') {
          context.queue.block(record.id)
          begin(record)
        } else if (record.status === 'creating' || record.status === 'deleting') {
          await attempt(context, record, async () => { await remove(context, record) })
        }
      }
      await removeUnknownDisks(context)
    },

    async close () { await Promise.all(pruning) }
  }
}

async function create (context: Context, { id = createId(), name, diskSizeGb: size, tags = {} }: WantedBuilder): Promise<BuilderRecord> {
  const { builders, volumes, settings, clock } = context
  const diskSizeGb = size ?? settings.builderDiskGb.default
  if (diskSizeGb > settings.builderDiskGb.max) throw InvalidRequest(`disk_size_gb: must be at most ${settings.builderDiskGb.max}`)
  const record: BuilderRecord = { id, status: 'creating', name: name ?? null, diskSizeGb, volumeId: newDisk(), tags, createdAt: clock(), lastUsedAt: null }
  if (!await builders.insert(record)) throw BuilderExists(id)
  try {
    await volumes.create(diskOf(record))
    await builders.setReady(id, record.volumeId)
  } catch (error) {
    await attempt(context, record, async () => { await remove(context, record) })
    throw error
  }
  return { ...record, status: 'ready' }
}

/** Keeps new builds away from a builder that is about to change. @throws builder_busy */
function claim ({ queue }: Context, { id, status }: BuilderRecord, { mayHaveWaiting = false } = {}): void {
  if (status === 'pruning') throw BuilderBusy(id, 'is being pruned')
  const waiting = queue.waitingFor(id).length
  if (!mayHaveWaiting && waiting > 0) throw BuilderBusy(id, waiting === 1 ? 'has a build that waits for it' : `has ${waiting} builds that wait for it`)
  if (!queue.block(id)) throw BuilderBusy(id, `is used by build ${queue.activeOf(id) ?? ''}`)
}

/** The disk first, and the row last, so that after a crash the row still shows what to do. */
async function remove ({ builders, volumes, queue }: Context, { id, volumeId }: BuilderRecord): Promise<void> {
  try {
    await builders.setStatus(id, 'deleting')
    await volumes.remove(volumeId, VOLUME_OWNER)
    await builders.remove(id)
  } finally {
    queue.unblock(id)
  }
}

/** The old disk is removed before the new one is made: a full host has no room for both. */
async function replaceDisk (context: Context, record: BuilderRecord): Promise<void> {
  const { builders, volumes, queue } = context
  await attempt(context, record, async () => {
    try {
      await volumes.remove(record.volumeId, VOLUME_OWNER)
      const next = { ...record, volumeId: newDisk() }
      await volumes.create(diskOf(next))
      await builders.setReady(record.id, next.volumeId)
    } catch (error) {
      await builders.setStatus(record.id, 'error')
      throw error
    }
  })
  queue.unblock(record.id)
}

async function removeUnknownDisks (context: Context): Promise<void> {
  const { builders, volumes } = context
  const known = new Set((await builders.all()).map(({ volumeId }) => volumeId))
  for (const id of await volumes.ownedBy(VOLUME_OWNER)) {
    if (!id.startsWith(DISK_PREFIX) || known.has(id)) continue
    try {
      await volumes.remove(id, VOLUME_OWNER)
    } catch (error) {
      context.log.error({ err: error, volume: id }, 'a disk that belongs to no builder could not be removed')
    }
  }
}

async function attempt ({ log }: Context, { id }: BuilderRecord, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    log.error({ err: error, builder: id }, 'the disk of a builder could not be put in order')
  }
}

function newDisk (): string {
  return `${DISK_PREFIX}${createId()}`
}

function diskOf ({ volumeId, diskSizeGb }: BuilderRecord): { readonly id: string, readonly name: string, readonly sizeGb: number, readonly owner: string } {
  return { id: volumeId, name: volumeId, sizeGb: diskSizeGb, owner: VOLUME_OWNER }
}
