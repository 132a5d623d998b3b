// Takes a TAP away that could not be taken away when its VM ended: until it is gone, or the instance has a VM again.
import type { BaseContext } from '../context.ts'
import { untilDone } from './later.ts'

export type UnplugLater = (id: string) => void

export function createUnplugLater (context: BaseContext): UnplugLater {
  const trying = new Set<string>()

  async function tryAgain (id: string): Promise<void> {
    const instance = context.instances.all().find((each) => each.id === id)
    // Whoever gives it a VM, or deletes it, sees to the TAP.
    if (instance === undefined || instance.session !== undefined || instance.record.handle !== null || context.kept.find(id) !== undefined) return
    await context.network?.unplug(id)
  }

  return (id) => {
    if (trying.has(id)) return
    trying.add(id)
    void untilDone(context, id, async () => await tryAgain(id)).finally(() => { trying.delete(id) })
  }
}
