// Finds the VM whose traffic ends workers. Each time, it is one of those that had something open in the worker that ended; where these are several, half of
// them go apart into a worker of their own, so that the next time says in which half it is.

export type Verdict =
  /** This VM is the one. */
  | { readonly cut: string }
  /** These are to be alone in a worker; those that were before come back. */
  | { readonly apart: ReadonlySet<string> }
  | undefined

/** What happened to one worker lately. */
interface History {
  endedMs: number[]
  suspects: ReadonlySet<string>
}

/** so often within that time a worker has to end before anybody is suspected: once may be anything */
const OFTEN = 3
const WITHIN_MS = 60_000

export class Blame {
  readonly #histories = new Map<string, History>()

  /** A worker has ended by itself. @param active VMs that had something open there @param homeOf the worker of a VM that is not apart */
  ended (worker: string, active: ReadonlySet<string>, nowMs: number, homeOf: (vm: string) => string): Verdict {
    const history = this.#historyOf(worker, nowMs)
    history.endedMs.push(nowMs)
    const narrowed = intersection(history.suspects, active)
    history.suspects = narrowed.size > 0 ? narrowed : active
    if (history.endedMs.length < OFTEN) return undefined
    const [first, ...others] = history.suspects
    if (first === undefined) return undefined
    if (others.length === 0) {
      this.#histories.clear()
      return { cut: first }
    }
    return this.#divide([first, ...others], nowMs, homeOf)
  }

  #divide (suspects: readonly string[], nowMs: number, homeOf: (vm: string) => string): Verdict {
    const half = Math.ceil(suspects.length / 2)
    const apart = new Set(suspects.slice(0, half))
    // One more end, in whichever of them, is enough.
    const watched = (vms: Iterable<string>): History => ({ endedMs: new Array<number>(OFTEN - 1).fill(nowMs), suspects: new Set(vms) })
    this.#histories.clear()
    this.#histories.set(APART, watched(apart))
    for (const vm of suspects.slice(half)) {
      const home = homeOf(vm)
      this.#histories.set(home, watched([vm, ...this.#histories.get(home)?.suspects ?? []]))
    }
    return { apart }
  }

  #historyOf (worker: string, nowMs: number): History {
    const known = this.#histories.get(worker)
    const endedMs = known?.endedMs.filter(time => nowMs - time < WITHIN_MS) ?? []
    const history = { endedMs, suspects: endedMs.length === 0 ? new Set<string>() : known?.suspects ?? new Set<string>() }
    this.#histories.set(worker, history)
    return history
  }
}

/** name of the worker for those that are suspected */
export const APART = 'apart'

function intersection (one: ReadonlySet<string>, other: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...one].filter(entry => other.has(entry)))
}
