// How many spare VMs of one key a burst would have taken: as many instances as were asked for in a short time, when there were not enough.

/** Requests within this time belong together: it is shorter than a spare VM takes to be made on a slow host. */
const BURST_MS = 10_000

interface Asked {
  /** of what was asked for lately */
  times: number[]
  most: number
  /** until when `most` holds */
  until: number
}

export interface Demand {
  /** @param isMet whether there was a spare VM */
  note (key: string, isMet: boolean): void
  /** Spare VMs that the next burst may take; 0 when there was none lately. */
  of (key: string): number
}

/** @param keptMs how long a burst is remembered */
export function createDemand (keptMs: number, now: () => number = () => performance.now()): Demand {
  const keys = new Map<string, Asked>()
  return {
    note (key, isMet) {
      const time = now()
      for (const [other, { until, times }] of keys) if (until <= time && (times.at(-1) ?? 0) <= time - BURST_MS) keys.delete(other)
      const asked = keys.get(key) ?? { times: [], most: 0, until: 0 }
      keys.set(key, asked)
      asked.times = [...asked.times.filter((each) => each > time - BURST_MS), time]
      const count = asked.times.length
      if (asked.until <= time) asked.most = 0
      // A burst that was met is as large as the one before; it does not ask for more.
      if (count < asked.most || (isMet && count > asked.most)) return
      asked.most = count
      asked.until = time + keptMs
    },
    of (key) {
      const asked = keys.get(key)
      return asked === undefined || asked.until <= now() ? 0 : asked.most
    }
  }
}
