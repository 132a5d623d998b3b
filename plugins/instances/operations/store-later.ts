// Stores what is so of an instance and could not be stored when it came about. Until then memory and row differ, and events tell nobody of it.
import type { BaseContext } from '../context.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { doLater } from '../parts/later.ts'

/**
 * To be called with what kept a fact from being stored, and its name; undefined: it is stored, and nothing is left to do. Otherwise it is tried until its row has it: with this attempt, or with any other
 * change meanwhile.
 */
export function storeLater (context: Pick<BaseContext, 'closing' | 'locks' | 'later' | 'log'>, instance: LiveInstance, failure: unknown, what: string): void {
  if (failure === undefined) return
  context.log.error({ err: failure, instance: instance.id }, `${what} could not be stored yet; it is tried again`)
  doLater(context, 'store', instance.id, async () => {
    if (!instance.deleted && !instance.isStored) await instance.save({})
  })
}
