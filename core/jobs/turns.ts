// Who comes next when more is asked for than is done at a time: callers take turns, so that who asks for a thousand things waits for himself, and nobody else for him.

interface Entry {
  readonly start: () => void
  hasBegun: boolean
}

/** A place in the line. */
export interface Turn {
  /** resolves when it is its turn */
  readonly begun: Promise<void>
  /** Somebody else waits for the same: it is done in the turn of whoever has his first. */
  joinedBy (caller: string): void
  /** Gives the place to the next, whether it has begun or not. Idempotent. */
  end (): void
}

export class Turns {
  readonly #atATime: number
  #running = 0
  /** by caller; who had his turn goes to the end */
  readonly #lines = new Map<string, Set<Entry>>()

  constructor (atATime: number) {
    this.#atATime = atATime
  }

  ask (caller: string): Turn {
    let start = (): void => {}
    const begun = new Promise<void>((resolve) => { start = resolve })
    const entry: Entry = { start, hasBegun: false }
    const callers = new Set<string>()
    let isEnded = false
    const joinedBy = (another: string): void => {
      if (entry.hasBegun || isEnded || callers.has(another)) return
      callers.add(another)
      const line = this.#lines.get(another) ?? new Set()
      line.add(entry)
      this.#lines.set(another, line)
    }
    joinedBy(caller)
    const end = (): void => {
      if (isEnded) return
      isEnded = true
      if (entry.hasBegun) this.#running--
      for (const each of callers) this.#leave(each, entry)
      this.#next()
    }
    this.#next()
    return { begun, joinedBy, end }
  }

  #next (): void {
    while (this.#running < this.#atATime) {
      const found = this.#first()
      if (found === undefined) return
      this.#running++
      found.hasBegun = true
      found.start()
    }
  }

  /** The first of the one whose turn it is, who goes to the end. */
  #first (): Entry | undefined {
    for (const [caller, line] of [...this.#lines]) {
      for (const entry of line) {
        line.delete(entry)
        if (entry.hasBegun) continue
        this.#lines.delete(caller)
        if (line.size > 0) this.#lines.set(caller, line)
        return entry
      }
      this.#lines.delete(caller)
    }
    return undefined
  }

  #leave (caller: string, entry: Entry): void {
    const line = this.#lines.get(caller)
    line?.delete(entry)
    if (line?.size === 0) this.#lines.delete(caller)
  }
}
