// How many VMs come up at once. Each takes a processor until its program runs: when more VMs come up than there are processors, each is later, and none is sooner.
import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Stopping } from '../../../core/http/errors.ts'
import { Turns } from '../../../core/jobs/turns.ts'
import { unlessAborted } from '../../../core/jobs/unless-aborted.ts'
import { processorsOfHost } from '../../../core/process/host-processors.ts'
import type { GuestSession } from '../guest/guest-session.ts'

const FEWEST = 2
/** a guest that takes longer waits for something else than a processor, so its turn ends */
const LONGEST_MS = 5_000
/** the caller of what the server does by itself */
const SERVER = ''

export interface StartTurn {
  /** Ends the turn, so that another VM may begin. Idempotent; happens by itself after a while. */
  end (): void
  /** Ends the turn once the guest's program runs, or will not run. */
  endWith (session: GuestSession): void
}

export interface Starts {
  /**
   * Resolves when a VM may come up. Callers take turns. Whoever has a turn must not wait for an instance's lock, since its holder may be waiting for a turn.
   * @param caller the id of the API key that asks; absent: the server itself
   * @throws Stopping for a caller who still waits when the server begins to stop, or who asks then
   */
  turn (caller: string | undefined): Promise<StartTurn>
  /** The server begins to stop: callers wait no longer, so that it need not wait for VMs that have not begun. */
  refuse (): void
}

/** Does the work in a turn, which ends with the work. */
export async function inTurn<T> ({ starts }: { readonly starts: Starts }, caller: string | undefined, work: () => Promise<T>): Promise<T> {
  const turn = await starts.turn(caller)
  try {
    return await work()
  } finally {
    turn.end()
  }
}

/** @param atOnce absent: as many as there are processors */
export function createStarts (atOnce: number | undefined, longestMs = LONGEST_MS): Starts {
  const turns = new Turns(atOnce ?? Math.max(FEWEST, processorsOfHost()))
  const stopping = new AbortController()
  // There is one listener for each caller who waits, which removes its own: Node's warning of a leak at more than ten would be wrong.
  setMaxListeners(0, stopping.signal)
  return {
    async turn (caller = SERVER) {
      const turn = turns.ask(caller)
      await unlessAborted(caller === SERVER ? undefined : stopping.signal, turn.begun).catch((error: unknown) => {
        turn.end()
        throw error
      })
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
    },
    refuse () {
      stopping.abort(Stopping())
    }
  }
}
