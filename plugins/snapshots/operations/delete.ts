// Deletes a snapshot in this order: nobody can begin to read it any more, nobody reads it any more, its files are removed, its row is removed.
import { NotFound } from '../../../core/errors/common.ts'
import type { Context } from '../context.ts'
import { imageHolder, type SnapshotRecord } from '../record.ts'

/** Waits for forks and restores that read the snapshot; cuts a compression off. */
export async function remove (context: Context, id: string): Promise<void> {
  const { copies, files, locks, repository, compressor } = context
  // A second delete waits for the first, and then finds nothing.
  await locks.hold(`delete ${id}`, async () => {
    const record = await repository.find(id)
    if (record === undefined || !await locks.hold(id, async () => await repository.beginDelete(id))) throw NotFound('snapshot', id)
    copies.forget(files.of(record))
    // Only now: a compression that begins after this finds the snapshot gone, and one that is about to swap the files has had its turn.
    await compressor.cancel(id)
    await finishRemoval(context, record)
  })
}

/** Removes what is left of a snapshot that is not whole, or is being deleted. Its row is removed last, so that a crash leaves something to go on from. */
export async function finishRemoval ({ files, images, repository }: Context, { id, imageDigest }: SnapshotRecord): Promise<void> {
  await files.remove(id)
  await images.release(imageDigest, imageHolder(id))
  await repository.remove(id)
}
