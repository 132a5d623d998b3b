// What could not be taken back when it was due is tried again, less and less often, until it is done. The next start of the server sees to what is left.
import { laterOnce } from '../../../core/jobs/until-done.ts'
import type { BaseContext } from '../context.ts'

/** One at a time of a name for each instance: another call while one goes on is none. Holds the instance's lock at each attempt; one that rejects is not the last. */
export function doLater ({ closing: { signal }, locks, later }: Pick<BaseContext, 'closing' | 'locks' | 'later'>, name: string, id: string, attempt: () => Promise<void>): void {
  laterOnce(later, `${name} ${id}`, async () => { await locks.hold(id, attempt) }, signal)
}
