// Gives back a volume that could not be given back when its instance had stopped naming it: until it is done, or the instance names it again.
import type { BaseContext } from '../context.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { doLater } from '../parts/later.ts'
import { shrinkRoom } from '../parts/room.ts'
import { removeVolumeOverlay } from './files.ts'
import { volumesOf } from './spec.ts'

/** What an instance has of a volume that its row does not name. Idempotent. */
export async function giveBack (context: BaseContext, { id }: Pick<LiveInstance, 'id'>, volumeId: string): Promise<void> {
  await removeVolumeOverlay(context, { id }, volumeId)
  await shrinkRoom(context, id)
  await context.volumes?.detach(id, [volumeId])
}

export function giveBackLater (context: BaseContext, { id }: Pick<LiveInstance, 'id'>, volumeId: string): void {
  doLater(context, `volume ${volumeId}`, id, async () => {
    const now = context.instances.known(id)
    if (now !== undefined && volumesOf(now.record.spec).some((volume) => volume.volumeId === volumeId)) return
    // Also for an instance that is gone: its delete gave back only what its row named.
    await giveBack(context, { id }, volumeId)
  })
}
