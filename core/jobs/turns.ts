// Divides limited work between callers in turns, so that a caller who asks for a thousand things delays only itself.

interface Entry {
  readonly start: () => void
  hasBegun: boolean
  /** in whose turn it has begun */
  caller?: string
}

/** A place in the line. */
export interface Turn {
  /** resolves when the turn begins */
  readonly begun: Promise<void>
  /** Another caller waits for the same work: it is done in the turn of whichever caller is first. */
  joinedBy (caller: string): void
  /** Gives the place to the next entry, whether this one has begun or not. Idempotent. */
  end (): void
}

export class Turns {
  readonly #atATime: number
  readonly #mostOfOne: number
  #running = 0
  /** how much of it goes on for each caller */
  readonly #runningOf = new Map<string, number>()
  /** the entries of each caller; a caller that had its turn goes to the end */
  readonly #lines = new Map<string, Set<Entry>>()

  /** @param mostOfOne how much may go on for one caller; absent: as much as for all of them */
  constructor (atATime: number, mostOfOne = atATime) {
    this.#atATime = atATime
    this.#mostOfOne = mostOfOne
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
      if (entry.caller !== undefined) this.#count(entry.caller, -1)
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
      found.hasBegun = true
      found.start()
    }
  }

  /** The first entry of the caller whose turn it is; the caller goes to the end. */
  #first (): Entry | undefined {
    for (const [caller, line] of [...this.#lines]) {
      if ((this.#runningOf.get(caller) ?? 0) >= this.#mostOfOne) continue
      for (const entry of line) {
        line.delete(entry)
        if (entry.hasBegun) continue
        entry.caller = caller
        this.#count(caller, 1)
        this.#lines.delete(caller)
        if (line.size > 0) this.#lines.set(caller, line)
        return entry
      }
      this.#lines.delete(caller)
    }
    return undefined
  }

  #count (caller: string, change: 1 | -1): void {
    this.#running += change
    const running = (this.#runningOf.get(caller) ?? 0) + change
    if (running > 0) this.#runningOf.set(caller, running)
    else this.#runningOf.delete(caller)
  }

  #leave (caller: string, entry: Entry): void {
    const line = this.#lines.get(caller)
    line?.delete(entry)
    if (line?.size === 0) this.#lines.delete(caller)
  }
}
