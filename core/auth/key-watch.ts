// Tells those who serve a key for long (streams, tokens made from it) that it has ended.
import type { Logger } from '../contracts/services.ts'

/** How long a key that another process has revoked, or that has expired, may still be served. */
const INTERVAL_MS = 4000

export interface KeyWatch {
  /** Calls `then` once when the key has ended; returns the function that cancels this. */
  add (id: string, then: () => void): () => void
  /** The key ends now. */
  end (id: string): void
  close (): void
}

/** @param ended which of these keys have ended */
export function createKeyWatch (ended: (ids: readonly string[]) => Promise<readonly string[]>, log: Logger, intervalMs = INTERVAL_MS): KeyWatch {
  const watchers = new Map<string, Set<() => void>>()
  let timer: NodeJS.Timeout | undefined

  const end = (id: string): void => {
    const calls = watchers.get(id)
    watchers.delete(id)
    for (const call of calls ?? []) {
      try {
        call()
      } catch (error) {
        log.error({ err: error }, 'what a key was used for did not end with it')
      }
    }
  }

  const look = async (): Promise<void> => {
    try {
      for (const id of await ended([...watchers.keys()])) end(id)
    } catch (error) {
      log.warn({ err: error }, 'whether keys of open streams still hold could not be found out; it is tried again')
    }
    timer = undefined
    plan()
  }

  // One timer at a time: a slow database is not asked again before it has answered.
  const plan = (): void => {
    if (watchers.size > 0) timer ??= setTimeout(() => { void look() }, intervalMs).unref()
  }

  return {
    add (id, then) {
      const calls = watchers.get(id) ?? new Set()
      watchers.set(id, calls)
      // a function of its own, since the caller may add the same one twice
      const call = (): void => { then() }
      calls.add(call)
      plan()
      return () => {
        calls.delete(call)
        if (calls.size === 0 && watchers.get(id) === calls) watchers.delete(id)
      }
    },
    end,
    close () {
      clearTimeout(timer)
      watchers.clear()
    }
  }
}
