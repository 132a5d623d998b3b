// Keeps builds away from a builder that is about to change.
import type { Context } from '../context.ts'
import { BuilderBusy } from '../errors.ts'
import type { BuilderRecord } from './record.ts'

/** Until the queue is told to unblock it. @throws builder_busy */
export function claim ({ queue }: Pick<Context, 'queue'>, { id, status }: BuilderRecord, { mayHaveWaiting = false } = {}): void {
  if (status === 'pruning') throw BuilderBusy(id, 'is being pruned')
  const waiting = queue.waitingFor(id).length
  if (!mayHaveWaiting && waiting > 0) throw BuilderBusy(id, waiting === 1 ? 'has a build that waits for it' : `has ${waiting} builds that wait for it`)
  if (!queue.block(id)) throw BuilderBusy(id, `is used by build ${queue.activeOf(id) ?? ''}`)
}
