// The volumes of this host: the functions that the routes call, and the service `volumes` for plugins that attach them.
import { randomInt } from 'node:crypto'
import type { Readable } from 'node:stream'
import { createId } from '@paralleldrive/cuid2'
import type { JobQueue } from '../../core/contracts/services.ts'
import type { Owner } from '../../core/jobs/shares.ts'
import type { Turns } from '../../core/jobs/turns.ts'
import { InvalidRequest } from '../../core/errors/common.ts'
import { needsRecovery } from '../../core/library/ext4.ts'
import { wantedPage, type Found } from '../../core/http/list.ts'
import { lookupStored } from '../../core/http/lookup.ts'
import { nowOrLater } from '../../core/jobs/now-or-later.ts'
import { unlessAborted } from '../../core/jobs/unless-aborted.ts'
import type { VolumeClaim, VolumeFacts, VolumeService, VolumeUsage, VolumeUser } from '../instances/volumes/contract.ts'
import { createEmpty, createFromArchive, roomOf, type MakeContext } from './create.ts'
import { VolumeDamaged } from './errors.ts'
import { playJournal } from './journal.ts'
import type { VolumeMetrics } from './metrics.ts'
import { GIB, type Attachment, type VolumeRecord, type VolumeWithAttachments } from './record.ts'
import { remove, removeLater } from './remove.ts'
import type { CreateVolume, ListVolumesQuery } from './schemas.ts'

/** A volume that a caller asks for. */
export type WantedVolume = Omit<CreateVolume, 'size_gb'> & { readonly sizeGb: number }

export interface VolumesOptions extends MakeContext {
  readonly metrics: VolumeMetrics
  readonly maxSizeGb: number
  readonly maxArchiveEntries: number
  /** in which archives wait, by key: a sender may take very long, so those of one key never have all turns */
  readonly turns: Turns
  /** what is unpacked now */
  readonly archives: JobQueue
}

type OwnedVolume = Parameters<VolumeService['create']>[0]

/** as many as `randomInt` can choose from; far from the end of what a number holds exactly */
const GENERATIONS = 2 ** 48 - 1

const LOOKUP = { what: 'volume', byName: true } as const

export class Volumes implements VolumeService {
  readonly #options: VolumesOptions

  constructor (options: VolumesOptions) {
    this.#options = options
  }

  /** Removes what an earlier server has left half-made, before anybody works with volumes. */
  async begin (): Promise<void> {
    const { files, repository, log } = this.#options
    await files.prepare()
    const records = await repository.all()
    for (const record of records) {
      if (record.status === 'ready') continue
      await remove(this.#options, record).catch((error: unknown) => { log.warn({ err: error, volume: record.id }, 'what is left of a volume could not be removed; it is tried again') })
    }
    const ready = records.filter(({ status }) => status === 'ready')
    await this.#options.resources?.retainOnly('volume', ready.map(roomOf))
    await this.#takeBack(await repository.attachments())
    const strangers = await files.strangers(new Set(ready.map(({ id }) => id)))
    if (strangers.length > 0) log.warn({ folder: files.paths.disks, names: strangers }, 'these are no volumes that this server knows; they are left alone')
  }

  async end (): Promise<void> {
    this.#options.closing.abort()
    await this.#options.archives.close()
  }

  /** Makes a volume for a caller. */
  async createEmpty (wanted: WantedVolume): Promise<VolumeWithAttachments> {
    return { ...await this.#createEmpty(this.#recordFor(wanted)), attachments: [] }
  }

  async create ({ id, name, sizeGb, owner }: OwnedVolume): Promise<void> {
    await this.#createEmpty({ id, status: 'creating', name, sizeGb, tags: {}, createdAt: Date.now(), generation: firstGeneration(), owner })
  }

  async createFromArchive (wanted: WantedVolume, archive: Readable, owner: Owner): Promise<VolumeWithAttachments> {
    const { turns, archives, maxArchiveEntries, metrics, closing } = this.#options
    const record = this.#recordFor(wanted)
    // The sender waits by itself, since nothing is read before its turn. Each job has a new name: two requests with the same id would be one job otherwise.
    const limits = { sizeGb: record.sizeGb, maxEntries: maxArchiveEntries }
    const turn = turns.ask(owner?.id ?? '')
    try {
      await unlessAborted(closing.signal, turn.begun)
      const made = await archives.push(createId(), async (signal) => await metrics.timed('archive', async () => await createFromArchive(this.#options, record, archive, limits, signal)))
      return { ...made, attachments: [] }
    } finally {
      turn.end()
    }
  }

  /** The volumes of callers. @throws invalid_request */
  async list ({ name, tags, ...page }: ListVolumesQuery): Promise<Found<VolumeWithAttachments>> {
    return await this.#options.repository.page({ ...name === undefined ? {} : { name }, ...tags === undefined ? {} : { tags } }, wantedPage(page))
  }

  /** By id, else by name. @throws not_found, ambiguous */
  async get (ref: string, owner?: string): Promise<VolumeWithAttachments> {
    const { repository } = this.#options
    return await lookupStored({ alike: async (text) => await repository.alike(text, owner) }, ref, LOOKUP)
  }

  async delete (ref: string): Promise<void> {
    await this.#delete(await this.get(ref))
  }

  async remove (id: string, owner: string): Promise<void> {
    const { repository } = this.#options
    const record = await repository.findOwned(id, owner)
    if (record === undefined || record.status === 'creating') return
    if (record.status === 'ready') await this.#delete(record)
    // a delete that failed in the middle
    else await remove(this.#options, record)
  }

  async ownedBy (owner: string): Promise<readonly string[]> {
    return (await this.#options.repository.ownedBy(owner)).map(({ id }) => id)
  }

  async find (ref: string, owner?: string): Promise<VolumeFacts> {
    const { id, name, sizeGb, generation } = await this.get(ref, owner)
    return { id, name, generation, sizeBytes: sizeGb * GIB }
  }

  async attach (instanceId: string, claims: readonly VolumeClaim[]): Promise<void> {
    if (claims.length > 0) await this.#options.repository.attach(instanceId, claims, Date.now())
  }

  async detach (instanceId: string, volumeIds?: readonly string[]): Promise<void> {
    const { files, locks, repository } = this.#options
    const ids = volumeIds ?? (await repository.attachmentsOf(instanceId)).map(({ volumeId }) => volumeId)
    // The name first: once the row is gone, another instance may have the volume.
    for (const id of ids) await locks.hold(id, async () => { await files.takeBack(instanceId, id) })
    if (ids.length > 0) await repository.detach(instanceId, ids)
  }

  async open (instanceId: string, { volumeId, readonly }: VolumeClaim, user: VolumeUser | undefined): Promise<string> {
    const { commands, files, locks, repository } = this.#options
    // Two readers that begin at the same time must not both play the journal.
    return await locks.hold(volumeId, async () => {
      const path = await files.lend(instanceId, volumeId, user)
      if (readonly && await needsRecovery(path)) {
        await files.grant(volumeId, { readonly: false, user })
        if (!await playJournal(commands, path, user)) throw VolumeDamaged((await repository.find(volumeId))?.name ?? volumeId)
      }
      await files.grant(volumeId, { readonly, user })
      return path
    })
  }

  async retainOnly (wanted: ReadonlyMap<string, readonly string[] | undefined>): Promise<void> {
    for (const { instanceId, volumeId } of await this.#options.repository.attachments()) {
      const isWanted = wanted.has(instanceId) && wanted.get(instanceId)?.includes(volumeId) !== false
      if (!isWanted) await this.detach(instanceId, [volumeId])
    }
  }

  async usage (): Promise<VolumeUsage> {
    const { files, repository } = this.#options
    const ready = (await repository.all()).filter(({ status }) => status === 'ready')
    const allocated = await Promise.all(ready.map(async ({ id }) => await files.allocatedBytes(id)))
    return { count: ready.length, sizeBytes: ready.reduce((sum, { sizeGb }) => sum + sizeGb * GIB, 0), allocatedBytes: allocated.reduce((sum, bytes) => sum + bytes, 0) }
  }

  async #createEmpty (record: VolumeRecord): Promise<VolumeRecord> {
    return await this.#options.metrics.timed('empty', async () => await createEmpty(this.#options, record))
  }

  async #delete (record: VolumeRecord): Promise<void> {
    // When it fails the volume may be gone for everybody else all the same: that may have been stored, and the answer lost.
    await nowOrLater(async () => { await this.#options.repository.beginDelete(record.id) }, () => { removeLater(this.#options, record) })
    await remove(this.#options, record)
  }

  /** Removes names that instances have of disks which do not belong to them any more. */
  async #takeBack (attachments: readonly Attachment[]): Promise<void> {
    const { files } = this.#options
    for (const [instanceId, ids] of await files.lent()) {
      const own = new Set(attachments.filter((attachment) => attachment.instanceId === instanceId).map(({ volumeId }) => volumeId))
      const stale = ids.filter((id) => !own.has(id))
      for (const id of stale) await files.takeBack(instanceId, id)
      if (ids.length === 0) await files.takeBack(instanceId, 'none')
    }
  }

  #recordFor ({ name, sizeGb, id = createId(), tags = {} }: WantedVolume): VolumeRecord {
    const { maxSizeGb } = this.#options
    if (sizeGb > maxSizeGb) throw InvalidRequest(`size_gb: must be at most ${maxSizeGb}`)
    return { id, status: 'creating', name, sizeGb, tags, createdAt: Date.now(), generation: firstGeneration() }
  }
}

/**
 * Where a volume's generation begins. By chance, and not by 0 or by a clock that may be put back: a memory image that knows a volume must not take another one with the same id for it.
 */
function firstGeneration (): number {
  return randomInt(GENERATIONS)
}
