// Deletes a snapshot: nobody can begin to read it, then nobody reads it, then its files go, and its row last.
import { NotFound } from '../../../core/errors/common.ts'
import type { Context } from '../context.ts'
import { imageHolder, type SnapshotRecord } from '../record.ts'

/** Waits for forks and restores that read it; a compression is cut off. */
export async function remove (context: Context, id: string): Promise<void> {
  const { locks, repository, compressor } = context
  // A second delete waits for the first, and then finds nothing.
  await locks.hold(`delete ${id}`, async () => {
    const record = await repository.find(id)
    if (record === undefined || !await locks.hold(id, async () => await repository.beginDelete(id))) throw NotFound('snapshot', id)
    // After the lines above: what begins now finds the snapshot gone, and one that is about to swap has had its turn.
    await compressor.cancel(id)
    await finishRemoval(context, record)
  })
}

/** Removes what there is of a snapshot that is none, or none any more. Its row goes last, so that a crash leaves something to go on from. */
export async function finishRemoval ({ files, images, repository }: Context, { id, imageDigest }: SnapshotRecord): Promise<void> {
  await files.remove(id)
  await images.release(imageDigest, imageHolder(id))
  await repository.remove(id)
}
