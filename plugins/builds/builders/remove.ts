// Removes a builder: its disk first, and its row last, so that whatever fails in between leaves something to go on from.
import { nowOrLater } from '../../../core/jobs/now-or-later.ts'
import { laterOnce } from '../../../core/jobs/until-done.ts'
import type { Context } from '../context.ts'
import { claim } from './claim.ts'
import { VOLUME_OWNER, type BuilderRecord } from './record.ts'

/** What stays keeps an id that nobody can have, and a disk; so that is tried again. Rejects all the same. */
export async function remove (context: Context, record: BuilderRecord): Promise<void> {
  await nowOrLater(async () => { await removeNow(context, record) }, () => { removeLater(context, record) })
}

/** Also for a row of which nobody knows whether it is there. */
export function removeLater (context: Context, { id, volumeId }: BuilderRecord): void {
  const { builders, locks, later, closing } = context
  laterOnce(later, `builder ${volumeId}`, async () => {
    await locks.hold(id, async () => {
      // Another builder may have its id by now.
      const record = await builders.settled(id, volumeId)
      if (record === undefined) return
      // It may have become ready without an answer, and somebody may use it.
      claim(context, record)
      await removeNow(context, record)
    })
  }, closing.signal)
}

async function removeNow ({ builders, volumes, queue }: Context, { id, volumeId }: BuilderRecord): Promise<void> {
  try {
    await builders.setStatus(id, 'deleting')
    await volumes.remove(volumeId, VOLUME_OWNER)
    await builders.remove(id)
  } finally {
    queue.unblock(id)
  }
}
