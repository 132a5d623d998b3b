// Work on one instance while nobody else changes it.
import { pathsIn, type Context } from '../context.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { logged } from '../folder/operations-log.ts'
import { requireOwn } from '../workers/own-instance.ts'

/** Operations that change neither an instance in standby nor what it would be restored to. Any other operation ends its kept VM. */
const HARMLESS: ReadonlySet<string> = new Set(['standby', 'restore', 'fork', 'snapshot', 'hold'])

/** For callers of the API, who have no access to instances that work for plugins. Finds the instance first, so that an unknown name takes no lock; looks again with the lock held, since the instance may be gone by then. */
export async function locked<T> (context: Context, ref: string, name: string, work: (instance: LiveInstance) => Promise<T>): Promise<T> {
  const found = context.instances.find(ref)
  requireOwn(name, found)
  const { id } = found
  return await context.locks.hold(id, async () => {
    const instance = context.instances.get(id)
    return await logged(pathsIn(context, id).operations, name, context.log, async () => {
      if (!HARMLESS.has(name)) await context.kept.end(id, 'changed')
      return await work(instance)
    })
  })
}
