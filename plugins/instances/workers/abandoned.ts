// Removes the instances that work for a plugin which does not run. Only their plugin would ever end them, and their VMs go on with what it gave them, such as the secrets of a build.
import type { Context } from '../context.ts'
import { remove } from '../operations/delete.ts'
import { doLater } from '../parts/later.ts'

/** Once every plugin has had its turn, in the background. */
export function removeAbandoned (context: Context): void {
  const { closing, instances, log, plugins } = context
  void plugins.allTried().then(() => {
    if (closing.signal.aborted) return
    for (const instance of instances.all()) {
      const { record: { id, name, spec: { worker } } } = instance
      if (worker === undefined || plugins.isStarted(worker)) continue
      log.warn({ instance: id, name, worker }, 'an instance is removed: the plugin that it works for does not run')
      doLater(context, 'abandoned', id, async () => { if (!instance.deleted) await remove(context, instance, 0) })
    }
  })
}
