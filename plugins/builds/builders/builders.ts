// The builders of this host: cache disks with a name, each used by one build at a time.
//
// A builder's row names its disk. After a kill between any two steps, the row says what was going on, and the next start of the server resumes it; disks that no row names
// are removed then.
import { createId } from '@paralleldrive/cuid2'
import { InvalidRequest, NotFound } from '../../../core/errors/common.ts'
import { wantedPage, type Found } from '../../../core/http/list.ts'
import { lookupStored } from '../../../core/http/lookup.ts'
import { nowOrLater } from '../../../core/jobs/now-or-later.ts'
import { doUntilDone, laterOnce } from '../../../core/jobs/until-done.ts'
import type { Context } from '../context.ts'
import { BuilderBusy, BuilderExists } from '../errors.ts'
import { claim } from './claim.ts'
import { DISK_PREFIX, VOLUME_OWNER, type BuilderRecord } from './record.ts'
import { remove, removeLater } from './remove.ts'
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
  const { builders, locks, later, queue, closing } = context
  const pruning = new Map<string, Promise<void>>()
  const begin = (record: BuilderRecord): void => {
    pruning.set(record.id, replaceDisk(context, record).finally(() => pruning.delete(record.id)))
  }
  /** The row of one may say already that it is ready, before its answer has come. */
  const requireAtRest = (id: string): void => { if (pruning.has(id)) throw BuilderBusy(id, 'is being pruned') }
  /** Whether a builder is to be pruned is not known: it was to be stored, and the answer was lost. Until it is known, it gets no build. */
  const beginLater = ({ id, volumeId }: BuilderRecord): void => {
    laterOnce(later, `prune ${id}`, async () => {
      await locks.hold(id, async () => {
        const record = await builders.settled(id, volumeId)
        if (pruning.has(id)) return
        if (record?.status === 'pruning') begin(record)
        else queue.unblock(id)
      })
    }, closing.signal)
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
    view: (record) => builderView(record, queue),
    create: async (body) => await create(context, body),

    async delete (ref) {
      const { id } = await get(ref)
      await locks.hold(id, async () => {
        const record = await whole(id)
        requireAtRest(id)
        claim(context, record)
        await remove(context, record)
      })
    },

    async prune (ref) {
      const { id } = await get(ref)
      return await locks.hold(id, async () => {
        const record = await whole(id)
        requireAtRest(id)
        claim(context, record, { mayHaveWaiting: true })
        await nowOrLater(async () => { await builders.setStatus(id, 'pruning') }, () => { beginLater(record) })
        begin(record)
        return { ...record, status: 'pruning' }
      })
    },

    async recover () {
      const records = await builders.all()
      for (const record of records.filter(({ status }) => status === 'creating' || status === 'deleting')) await attempt(context, record, async () => { await remove(context, record) })
      // Before new disks are made, which no row names yet.
      await removeUnknownDisks(context)
      for (const record of records.filter(({ status }) => status === 'pruning')) {
        queue.block(record.id)
        begin(record)
      }
    },

    async close () { await Promise.all(pruning.values()) }
  }
}

async function create (context: Context, { id = createId(), name, diskSizeGb: size, tags = {} }: WantedBuilder): Promise<BuilderRecord> {
  const { builders, volumes, settings, clock } = context
  const diskSizeGb = size ?? settings.builderDiskGb.default
  if (diskSizeGb > settings.builderDiskGb.max) throw InvalidRequest(`disk_size_gb: must be at most ${settings.builderDiskGb.max}`)
  const record: BuilderRecord = { id, status: 'creating', name: name ?? null, diskSizeGb, volumeId: newDisk(), tags, createdAt: clock.unique(), lastUsedAt: null }
  // When it fails the row may be there all the same: it may have been stored, and the answer lost.
  if (!await nowOrLater(async () => await builders.insert(record), () => { removeLater(context, record) })) throw BuilderExists(id)
  try {
    await volumes.create(diskOf(record))
    await builders.setReady(id, record.volumeId)
  } catch (error) {
    await attempt(context, record, async () => { await remove(context, record) })
    throw error
  }
  return { ...record, status: 'ready' }
}

/** The old disk is removed before the new one is made: a full host has no room for both. */
async function replaceDisk (context: Context, record: BuilderRecord): Promise<void> {
  const { builders, volumes, queue, closing, log } = context
  const { id } = record
  const next = { ...record, volumeId: newDisk() }
  const isMade = await attempt(context, record, async () => {
    await volumes.remove(record.volumeId, VOLUME_OWNER)
    await volumes.create(diskOf(next))
  })
  // However long the database is away: nobody else would, and the builder would seem to be pruned for ever. When the server stops meanwhile, its next start goes on.
  await attempt(context, record, async () => {
    await doUntilDone(async () => { await (isMade ? builders.setReady(id, next.volumeId) : builders.setStatus(id, 'error')) }, closing.signal, (error) => {
      log.warn({ err: error, builder: id }, 'the end of a prune could not be stored yet; it is tried again')
    })
  })
  queue.unblock(id)
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

/** Whether it succeeded. */
async function attempt ({ log }: Context, { id }: BuilderRecord, work: () => Promise<void>): Promise<boolean> {
  try {
    await work()
    return true
  } catch (error) {
    log.error({ err: error, builder: id }, 'the disk of a builder could not be put in order')
    return false
  }
}

function newDisk (): string {
  return `${DISK_PREFIX}${createId()}`
}

function diskOf ({ volumeId, diskSizeGb }: BuilderRecord): { readonly id: string, readonly name: string, readonly sizeGb: number, readonly owner: string } {
  return { id: volumeId, name: volumeId, sizeGb: diskSizeGb, owner: VOLUME_OWNER }
}
