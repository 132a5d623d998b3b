// Reads a snapshot: others may read it at the same time; whoever wants to change or remove it waits.
import { NotFound } from '../../../core/errors/common.ts'
import type { Context } from '../context.ts'
import type { SnapshotWithCopy } from '../record.ts'

/** @throws not_found */
export async function reading<T> ({ locks, repository }: Context, id: string, work: (snapshot: SnapshotWithCopy) => Promise<T>): Promise<T> {
  return await locks.share(id, async () => {
    const snapshot = await repository.withCopy(id)
    if (snapshot === undefined) throw NotFound('snapshot', id)
    return await work(snapshot)
  })
}
