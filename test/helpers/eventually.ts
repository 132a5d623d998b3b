// The one way in which tests wait for what nothing announces.
import { setTimeout as sleep } from 'node:timers/promises'

/** Longer than anything takes that is going to come, also on a host under load; what never comes costs a failing test this long. */
export const PATIENCE_MS = 180_000

const LEAST_POLL_MS = 10
const MOST_POLL_MS = 250

export interface EventuallyOptions {
  readonly limitMs?: number
  /** time between two looks; absent: a twentieth of the time that has passed, so that a long wait costs little of a host that other tests share */
  readonly pollMs?: number
  /** what is known then; its text is in the failure */
  readonly explain?: () => string | Promise<string>
}

/** Looks again and again until there is something true; resolves to that. Fails with `what` when it does not come. */
export async function eventually<T> (what: string, look: () => T | Promise<T>, { limitMs = PATIENCE_MS, pollMs, explain }: EventuallyOptions = {}): Promise<Exclude<T, false | undefined | null | '' | 0>> {
  const began = performance.now()
  const deadline = began + limitMs
  for (;;) {
    // The time is taken before the look: what came while this process had no processor still counts.
    const isLate = performance.now() > deadline
    const found = await look()
    if (isTrue(found)) return found
    if (isLate) throw new Error(`${what}: not within ${limitMs / 1000} s${explain === undefined ? '' : `: ${await explain()}`}`)
    await sleep(pollMs ?? Math.min(MOST_POLL_MS, Math.max(LEAST_POLL_MS, (performance.now() - began) / 20)))
  }
}

/** The same for what needs no name: the place of the call says what is waited for. */
export async function until (holds: () => boolean | Promise<boolean>): Promise<void> {
  await eventually('what is waited for', holds)
}

function isTrue<T> (value: T): value is Exclude<T, false | undefined | null | '' | 0> {
  return Boolean(value)
}
