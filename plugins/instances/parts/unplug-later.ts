// Takes a TAP away that could not be taken away when its VM ended: until it is gone, or the instance has a VM again.
import type { BaseContext } from '../context.ts'
import { doLater } from './later.ts'

export function unplugLater (context: BaseContext, id: string): void {
  doLater(context, 'unplug', id, async () => {
    const instance = context.instances.known(id)
    // Whoever gives it a VM, or deletes it, sees to the TAP.
    if (instance === undefined || instance.session !== undefined || instance.record.handle !== null || context.kept.find(id) !== undefined) return
    await context.network?.unplug(id)
  })
}
