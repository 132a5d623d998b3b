// A pause that can be ended early, and that does not keep the process alive.

export interface Pause {
  /** Resolves after `ms`, or when `end` is called. */
  start (ms: number): Promise<void>
  /** Ends the current pause; when there is none, the next one ends at once. */
  end (): void
}

export function createPause (): Pause {
  let finish: (() => void) | undefined
  let skipNext = false
  return {
    start (ms) {
      if (skipNext) {
        skipNext = false
        return Promise.resolve()
      }
      return new Promise((resolve) => {
        const timer = setTimeout(() => finish?.(), ms).unref()
        finish = () => {
          clearTimeout(timer)
          finish = undefined
          resolve()
        }
      })
    },
    end () {
      if (finish === undefined) skipNext = true
      else finish()
    }
  }
}
