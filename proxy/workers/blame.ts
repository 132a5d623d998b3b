// Finds the VM whose traffic ends workers. The suspects are the VMs that had something open in the worker that ended. When there are several, half of
// them go into a worker of their own, so that the next end of a worker shows which half the VM is in.

export type Verdict =
  /** This VM is to be cut off. */
  | { readonly cut: string }
  /** These VMs are to be alone in a worker of their own; those that were in it before come back. */
  | { readonly apart: ReadonlySet<string> }
  | undefined

/** The recent ends of one worker. */
interface History {
  endedMs: number[]
  suspects: ReadonlySet<string>
}

/** number of ends within that time before any VM is suspected: a single end may have any cause */
const OFTEN = 3
const WITHIN_MS = 60_000

export class Blame {
  readonly #histories = new Map<string, History>()

  /** A worker has ended by itself. @param active VMs that had something open there @param homeOf the regular worker of a VM */
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
    // One more end, of either worker, is enough.
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

/** name of the worker for suspected VMs */
export const APART = 'apart'

function intersection (one: ReadonlySet<string>, other: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...one].filter(entry => other.has(entry)))
}
