// Ends connections that the kernel tracks, with what conntrack answers in a race.
import { exitedWith } from '../process/errors.ts'

/** Each time at least one connection fewer is left, and they end rarely. */
const ATTEMPTS = 10

/** Ends the tracked connections that a filter of conntrack fits, if there are any. @param run runs conntrack with these arguments, in the network namespace that is meant */
export async function forgetConnections (run: (args: readonly string[]) => Promise<unknown>, filter: readonly string[]): Promise<void> {
  for (let left = ATTEMPTS; ; left--) {
    try {
      await run(['--delete', ...filter])
      return
    } catch (error) {
      if (!exitedWith(error, 1)) throw error
      // conntrack's exit code when there were no connections
      if (error.failure.stderr.includes('0 flow entries')) return
      // conntrack lists the connections and then deletes one after the other, and stops at one that has ended by itself meanwhile.
      if (left === 1 || !error.failure.stderr.includes('such conntrack doesn\'t exist')) throw error
    }
  }
}
