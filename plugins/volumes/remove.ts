// Removes a volume that nobody can find any more: its disk, its claim to room, and its row last, so that whatever fails in between leaves something to go on from.
import { nowOrLater } from '../../core/jobs/now-or-later.ts'
import type { Locks } from '../../core/jobs/locks.ts'
import { laterOnce } from '../../core/jobs/until-done.ts'
import type { ResourceService } from '../instances/room/contract.ts'
import type { VolumeFiles } from './files.ts'
import type { VolumeRecord } from './record.ts'
import type { VolumeRepository } from './repository.ts'

export interface RemoveContext {
  readonly files: VolumeFiles
  readonly repository: VolumeRepository
  /** undefined without the plugin resources: nobody asks whether there is room */
  readonly resources: ResourceService | undefined
  /** by volume */
  readonly locks: Locks
  /** the removals that are tried again until they are done */
  readonly later: Set<string>
  /** aborts when the server stops */
  readonly closing: AbortController
}

/** Whatever stays keeps room of the host, an id and perhaps a name, and whoever asked may never come back: so that is tried again. Rejects all the same. */
export async function remove (context: RemoveContext, record: VolumeRecord): Promise<void> {
  await nowOrLater(async () => { await removeNow(context, record) }, () => { removeLater(context, record) })
}

/** Also for a row of which nobody knows whether it is there, or says that the volume is being removed. */
export function removeLater (context: RemoveContext, record: VolumeRecord): void {
  laterOnce(context.later, `${record.createdAt} ${record.id}`, async () => { await removeNow(context, record) }, context.closing.signal)
}

/** Does nothing to one that is whole, or to another one that has its id by now. */
async function removeNow ({ files, repository, resources, locks }: RemoveContext, record: VolumeRecord): Promise<void> {
  const { id } = record
  // Of two that remove it, the later one must not meet the next volume of this id.
  await locks.hold(id, async () => {
    if (!await repository.isLeft(record)) return
    await files.remove(id)
    await resources?.release('volume', id)
    await repository.giveUp(record)
  })
}
