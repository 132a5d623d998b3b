// What must be there and what must be gone, by what was acknowledged. Calls meet: where two that concern one name overlap, nothing is certain about it.

export type Kind = 'instance' | 'volume' | 'snapshot'

interface Name {
  /** what was made and acknowledged, and whether a delete may have come to it since */
  readonly made: Map<string, { isDoubtful: boolean }>
  creates: number
  deletes: number
  deleting: number
  isGone: boolean
}

export class Model {
  readonly #names = new Map<string, Name>()
  readonly #touched = new Set<string>()

  /** A call that makes something begins; what it gives takes the id of what was made, if that was acknowledged. */
  creates (kind: Kind, name: string): (id: string | undefined) => void {
    const entry = this.#entry(kind, name)
    entry.creates++
    entry.isGone = false
    const deletesBefore = entry.deletes
    const wasDeleting = entry.deleting > 0
    if (kind === 'instance') this.touches(name)
    return (id) => {
      entry.creates++
      entry.isGone = false
      if (id !== undefined) entry.made.set(id, { isDoubtful: wasDeleting || entry.deletes !== deletesBefore })
    }
  }

  /** A call that removes begins, of all of the name or of one alone; what it gives takes the status of the answer. */
  deletes (kind: Kind, name: string, id?: string): (status: number) => void {
    const entry = this.#entry(kind, name)
    entry.deletes++
    entry.deleting++
    const before = new Map([...entry.made].map(([each, state]) => [each, state.isDoubtful]))
    const createsBefore = entry.creates
    for (const [each, state] of entry.made) if (id === undefined || each === id) state.isDoubtful = true
    if (kind === 'instance') this.touches(name)
    return (status) => {
      entry.deleting--
      const isAlone = entry.creates === createsBefore
      if (status === 204) {
        if (id !== undefined) entry.made.delete(id)
        else if (isAlone) {
          entry.made.clear()
          entry.isGone = true
        }
      } else if (status >= 400 && status < 500 && status !== 404) {
        // It was refused, and so did nothing.
        for (const [each, isDoubtful] of before) {
          const state = entry.made.get(each)
          if (state !== undefined && (id === undefined || each === id) && entry.deleting === 0) state.isDoubtful = isDoubtful
        }
      }
    }
  }

  /** A call that may change how an instance runs. */
  touches (name: string): void {
    this.#touched.add(name)
  }

  wasTouched (name: string): boolean {
    return this.#touched.has(name)
  }

  nextRound (): void {
    this.#touched.clear()
  }

  /** ids of what must be there */
  there (kind: Kind): string[] {
    return this.#of(kind).flatMap(([, { made }]) => [...made].filter(([, { isDoubtful }]) => !isDoubtful).map(([id]) => id))
  }

  /** names of which nothing may be there */
  gone (kind: Kind): string[] {
    return this.#of(kind).filter(([, { isGone }]) => isGone).map(([name]) => name)
  }

  /** What is not there and may be so is forgotten, and what is there was doubtful and is certain now. */
  learn (kind: Kind, present: ReadonlySet<string>): void {
    for (const [, { made }] of this.#of(kind)) {
      for (const [id, state] of made) {
        if (present.has(id)) state.isDoubtful = false
        else made.delete(id)
      }
    }
  }

  #of (kind: Kind): [string, Name][] {
    return [...this.#names].filter(([key]) => key.startsWith(`${kind} `)).map(([key, entry]) => [key.slice(kind.length + 1), entry])
  }

  #entry (kind: Kind, name: string): Name {
    const key = `${kind} ${name}`
    const known = this.#names.get(key)
    if (known !== undefined) return known
    const entry: Name = { made: new Map(), creates: 0, deletes: 0, deleting: 0, isGone: false }
    this.#names.set(key, entry)
    return entry
  }
}
