// Deletes a snapshot in this order: nobody can begin to read it any more, nobody reads it any more, its files are removed, its row is removed.
import { NotFound } from '../../../core/errors/common.ts'
import { nowOrLater } from '../../../core/jobs/now-or-later.ts'
import { untilDone } from '../../../core/jobs/until-done.ts'
import type { Context } from '../context.ts'
import { imageHolder, type SnapshotRecord } from '../record.ts'

/** Waits for forks and restores that read the snapshot; cuts a compression off. What fails is told, and tried again for as long as it takes: whoever asked may never come back. */
export async function remove (context: Context, id: string): Promise<void> {
  const { locks, repository } = context
  // A second delete waits for the first, and then finds nothing.
  await locks.hold(`delete ${id}`, async () => {
    const record = await repository.find(id)
    if (record === undefined) throw NotFound('snapshot', id)
    const isDeleted = await nowOrLater(async () => {
      const isBegun = await locks.hold(id, async () => await repository.beginDelete(id))
      if (isBegun) await finishDelete(context, record)
      return isBegun
    }, () => { removeLater(context, id) })
    if (!isDeleted) throw NotFound('snapshot', id)
  })
}

/** Whether the row says that the snapshot is being deleted is not known: the answer may have been lost. */
function removeLater (context: Context, id: string): void {
  const { locks, repository, closing } = context
  void untilDone(async () => {
    await locks.hold(`delete ${id}`, async () => {
      const record = await repository.settled(id)
      if (record?.status === 'deleting') await finishDelete(context, record)
    })
  }, closing.signal)
}

async function finishDelete (context: Context, record: SnapshotRecord): Promise<void> {
  const { copies, files, compressor } = context
  copies.forget(files.of(record))
  // Only now: a compression that begins after this finds the snapshot gone, and one that is about to swap the files has had its turn.
  await compressor.cancel(record.id)
  await finishRemoval(context, record)
}

/** Removes what is left of a snapshot that is not whole, or is being deleted. Its row is removed last, so that a crash leaves something to go on from. */
export async function finishRemoval ({ files, images, repository }: Context, { id, imageDigest }: SnapshotRecord): Promise<void> {
  await files.remove(id)
  await images.release(imageDigest, imageHolder(id))
  await repository.remove(id)
}
