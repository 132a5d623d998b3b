// Calls work when it is due. Each alarm is checked again at least once a minute, since a timer of Node neither holds more than 25 days nor counts the time that a host sleeps.
const LONGEST_SLEEP_MS = 60_000

export interface Alarms {
  /** Replaces an earlier alarm of the key. @param work must not throw */
  set (key: string, msLeft: () => number, work: () => void): void
  clear (key: string): void
  /** No work begins after this. */
  close (): void
}

export function createAlarms (): Alarms {
  const timers = new Map<string, NodeJS.Timeout>()
  let closed = false

  const clear = (key: string): void => {
    clearTimeout(timers.get(key))
    timers.delete(key)
  }
  const look = (key: string, msLeft: () => number, work: () => void): void => {
    const left = msLeft()
    timers.set(key, setTimeout(() => {
      if (msLeft() > 0) return look(key, msLeft, work)
      timers.delete(key)
      work()
    }, Math.min(Math.max(Math.ceil(left), 0), LONGEST_SLEEP_MS)).unref())
  }

  return {
    set (key, msLeft, work) {
      clear(key)
      if (!closed) look(key, msLeft, work)
    },
    clear,
    close () {
      closed = true
      for (const key of [...timers.keys()]) clear(key)
    }
  }
}
