// How many VMs come up at once. Each takes a processor until its program runs: more of them side by side than there are processors make every one late, and none of them sooner.
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { actingKey } from '../../../core/http/acting.ts'
import { Turns } from '../../../core/jobs/turns.ts'
import type { GuestSession } from '../guest/guest-session.ts'

const FEWEST = 2
/** a guest that takes longer waits for something else than a processor, and keeps nobody else */
const LONGEST_MS = 5_000

export interface StartTurn {
  /** Somebody else may begin. Idempotent; it happens by itself after a while. */
  end (): void
  /** The same once the guest's program runs, or will not. */
  endWith (session: GuestSession): void
}

export interface Starts {
  /** Resolves when a VM may come up. Keys take turns. Nobody who has one may wait for an instance's lock that somebody may hold who waits for one. */
  turn (): Promise<StartTurn>
}

/** Does it when it is its turn; the turn is over when it is done. */
export async function inTurn<T> ({ starts }: { readonly starts: Starts }, work: () => Promise<T>): Promise<T> {
  const turn = await starts.turn()
  try {
    return await work()
  } finally {
    turn.end()
  }
}

/** @param atOnce absent: as many as there are processors */
export function createStarts (atOnce: number | undefined, longestMs = LONGEST_MS): Starts {
  const turns = new Turns(atOnce ?? Math.max(FEWEST, availableParallelism()))
  return {
    async turn () {
      const turn = turns.ask(actingKey())
      await turn.begun
      const over = new AbortController()
      const end = (): void => {
        over.abort()
        turn.end()
      }
      sleep(longestMs, undefined, { ref: false, signal: over.signal }).then(end, () => {})
      return {
        end,
        endWith (session) {
          Promise.race([session.started, session.ended]).then(end, end)
        }
      }
    }
  }
}
