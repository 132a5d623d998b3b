// Works that ask the database, one after the other, of which those behind do not wait out a database that hangs once for each one before them.
import { createLocks } from '../jobs/locks.ts'
import { DatabaseUnavailable, isDatabaseAway } from './deadline.ts'

/** Whoever has not waited for longer asks the database himself: one lost connection is no reason to refuse all that wait. */
const PATIENCE_MS = 1000

/** Runs `work` once all that came before has ended. @throws DatabaseUnavailable when it has waited for a work that found the database away; then it is not begun */
export type Line = <T>(work: () => Promise<T>) => Promise<T>

/** Each work has the deadlines of its own statements; so without this the twentieth would hear of a database that hangs after twenty times ten seconds. */
export function createLine (): Line {
  const locks = createLocks()
  /** what the work before has found */
  let isAway = false
  return async (work) => {
    const cameAt = performance.now()
    return await locks.hold('', async () => {
      if (isAway && performance.now() - cameAt > PATIENCE_MS) throw DatabaseUnavailable()
      isAway = false
      try {
        return await work()
      } catch (error) {
        isAway = isDatabaseAway(error)
        throw error
      }
    })
  }
}
