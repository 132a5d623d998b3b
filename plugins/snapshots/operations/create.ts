// Takes a snapshot: first a row, which claims the name, then the files, then the change of the row that says both are whole. Killed between any two steps, the
// row says `creating`, and the next start of the server removes all of it.
import { createId } from '@paralleldrive/cuid2'
import { NameConflict } from '../../../core/errors/common.ts'
import { isDiskFull } from '../../../core/fs/disk-full.ts'
import { nowOrLater } from '../../../core/jobs/now-or-later.ts'
import { untilDone } from '../../../core/jobs/until-done.ts'
import { createUndo, type Undo } from '../../../core/undo.ts'
import type { CopyKind, InstanceFacts } from '../../instances/contract.ts'
import type { Context } from '../context.ts'
import { DiskFull } from '../errors.ts'
import { imageHolder, type SnapshotContent, type SnapshotRecord } from '../record.ts'
import { finishRemoval } from './delete.ts'

export interface NewSnapshot {
  readonly kind: CopyKind
  readonly name?: string
  readonly compression?: { readonly enabled: boolean, readonly algorithm?: 'zstd' | 'lz4', readonly level?: number }
  readonly tags?: Readonly<Record<string, string>>
  /** made by a schedule */
  readonly scheduled?: boolean
}

/** Returns once the snapshot is synced, so that the caller may delete the source. The source has gone on long before that. */
export async function create (context: Context, ref: string, wanted: NewSnapshot): Promise<SnapshotRecord> {
  const source = context.copies.find(ref)
  const record = recordFor(context, source, wanted)
  const undo = createUndo()
  try {
    const made = await make(context, source, record, undo)
    undo.drop()
    return made
  } catch (error) {
    for (const failure of await undo.run()) context.log.error({ err: failure, snapshot: record.id }, 'a step of a failed snapshot could not be taken back')
    throw isDiskFull(error) ? DiskFull.from(error) : error
  }
}

async function make (context: Context, source: InstanceFacts, record: SnapshotRecord, undo: Undo): Promise<SnapshotRecord> {
  const { repository, images, files, copies, locks, compressor } = context
  const { id, kind, name } = record
  // When it fails the row may be there all the same: it may have been stored, and the answer lost.
  const isNew = await nowOrLater(async () => await repository.insert(record), () => { giveUpLater(context, record) })
  if (!isNew) throw NameConflict(`name: instance ${source.name} has a snapshot named ${name ?? ''} already`)
  undo.add(async () => { await giveUp(context, record) })
  await images.hold(source.imageDigest, imageHolder(id))
  await files.make(id)
  const copy = await copies.capture(source.id, kind, files.raw(id))
  await files.sync(id, kind)
  const content = { copy, ...await files.measure(id, kind) }
  // From the moment at which it is listed, others may read or delete it.
  return await locks.hold(id, async () => {
    await complete(context, record, content, undo)
    if (record.compressionState === 'compressing') compressor.begin(id)
    return { ...record, status: 'ready', diskBytes: content.diskBytes, memoryBytes: content.memoryBytes }
  })
}

/** What stays while the database is away keeps a name that nobody can have, and an image; so its removal is tried again. Rejects all the same. */
async function giveUp (context: Context, record: SnapshotRecord): Promise<void> {
  await nowOrLater(async () => { await finishRemoval(context, record) }, () => { giveUpLater(context, record) })
}

/** Also when nobody knows what its row says: a snapshot that is whole stays. */
function giveUpLater (context: Context, { id }: SnapshotRecord): void {
  const { repository, compressor, closing } = context
  void untilDone(async () => {
    const record = await repository.settled(id)
    if (record !== undefined && record.status !== 'ready') await finishRemoval(context, record)
    else if (record?.compressionState === 'compressing') compressor.begin(id)
  }, closing.signal)
}

async function complete (context: Context, record: SnapshotRecord, content: SnapshotContent, undo: Undo): Promise<void> {
  const { repository } = context
  try {
    await repository.complete(record.id, content)
  } catch (error) {
    // The row may have been stored all the same, so the files stay unless it is certain that nobody can find the snapshot.
    try {
      await repository.abandon(record.id)
    } catch (failure) {
      undo.drop()
      giveUpLater(context, record)
      throw new AggregateError([error, failure], `snapshot ${record.id} could be neither stored nor given up; that is decided when its row can be read`)
    }
    throw error
  }
}

function recordFor ({ copies, clock }: Context, source: InstanceFacts, { kind, name, compression, tags = {}, scheduled = false }: NewSnapshot): SnapshotRecord {
  const holding = copies.compression(source.id, compression)
  // A disk alone is not compressed, but an invalid wish is refused all the same.
  const wanted = kind === 'Standby' ? holding ?? null : null
  return {
    id: createId(),
    status: 'creating',
    kind,
    name: name ?? null,
    sourceId: source.id,
    sourceName: source.name,
    hypervisor: source.hypervisor,
    imageDigest: source.imageDigest,
    tags,
    scheduled,
    createdAt: clock.now(),
    diskBytes: 0,
    memoryBytes: null,
    compressedBytes: null,
    compression: wanted,
    compressionState: wanted === null ? 'none' : 'compressing',
    compressionError: null
  }
}
