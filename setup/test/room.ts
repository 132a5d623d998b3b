// Whether the host has processors to spare: many tests mostly wait, and with a fixed number of them at a time processors would wait, too.
import { cpus, freemem } from 'node:os'
import { setTimeout } from 'node:timers/promises'

/** long enough that a job that began just now is seen at work */
const WINDOW_MS = 2000
/** of a processor */
const SPARE = 0.25
/** What one more job may need. */
const SPARE_BYTES = 4 * 2 ** 30

/** The time for which all processors together did nothing, ms. */
const idleMs = (): number => cpus().reduce((sum, { times }) => sum + times.idle, 0)

/** Looks for a while. Callers take turns, so that each sees what the one before has begun. */
export function roomOfHost (windowMs = WINDOW_MS): () => Promise<boolean> {
  let turn: Promise<unknown> = Promise.resolve()
  const look = async (): Promise<boolean> => {
    const [idle, began] = [idleMs(), performance.now()]
    await setTimeout(windowMs)
    return (idleMs() - idle) / (performance.now() - began) >= SPARE && freemem() >= SPARE_BYTES
  }
  return async () => {
    const mine = turn.then(look)
    turn = mine
    return await mine
  }
}
