// Stores what is so of an instance and could not be stored when it came about. Until then memory and row differ, and events tell nobody of it.
import type { BaseContext } from '../context.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { doLater } from '../parts/later.ts'

/** Until its row has it: with this attempt, or with any other change meanwhile. */
export function storeLater (context: Pick<BaseContext, 'closing' | 'locks' | 'later'>, instance: LiveInstance): void {
  doLater(context, 'store', instance.id, async () => {
    if (!instance.deleted && !instance.isStored) await instance.save({})
  })
}
