// Requests that may be sent again by clients that gave them up, and the answers that came all the same.
import { deferred } from '../jobs/deferred.ts'

/** for a client that waits up to 8 s before it repeats a request, on a slow host and a slow line */
const KEEP_MS = 30_000
const MOST_ANSWERS = 1000
const MOST_BYTES = 16 * 2 ** 20
/** Worth another try: what they say may be over by then. 501 is not. */
const PASSING: ReadonlySet<number> = new Set([408, 429])

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Buffer
}

/** A request that is worked on, or whose answer waits for its repeat. */
export interface Attempt {
  readonly id: string
  /** undefined: there will be none that could be given again */
  readonly answered: Promise<Answer | undefined>
}

interface Entry extends Attempt {
  /** its client, or that of a repeat that has taken it, is still there */
  isHeld: boolean
  answer: Answer | undefined
  readonly tell: (answer: Answer | undefined) => void
  timer?: NodeJS.Timeout
}

/**
 * An attempt is in here until its answer was sent whole. One that was given up before that can be taken by a repeat, one repeat at a time, and when that is given up as well, by the next. An answer that nobody is
 * there for is kept for 30 s, unless it is an error that is worth another try; at most 1000 answers are kept so, and at most 16 MB of their bodies: then those that were kept first go.
 */
export class Attempts {
  readonly #byId = new Map<string, Set<Entry>>()
  /** answers that wait for a repeat, the oldest first */
  readonly #kept = new Set<Entry>()
  readonly #keepMs: number
  readonly #most: number
  readonly #mostBytes: number
  #bytes = 0

  constructor ({ keepMs = KEEP_MS, most = MOST_ANSWERS, mostBytes = MOST_BYTES } = {}) {
    this.#keepMs = keepMs
    this.#most = most
    this.#mostBytes = mostBytes
  }

  /** A request begins. Answers that were kept for repeats of equal ones go: whoever begins anew wants it done anew, and so does its repeat. @param id what it has in common with its repeats */
  begin (id: string): Attempt {
    for (const earlier of this.#equalTo(id)) if (this.#kept.has(earlier)) this.end(earlier)
    const { promise, resolve } = deferred<Answer | undefined>()
    const entry: Entry = { id, answered: promise, isHeld: true, answer: undefined, tell: resolve }
    this.#byId.set(id, new Set([...this.#equalTo(id), entry]))
    return entry
  }

  /** The oldest attempt that was given up, for a repeat of it. */
  take (id: string): Attempt | undefined {
    for (const entry of this.#equalTo(id)) {
      if (entry.isHeld) continue
      entry.isHeld = true
      this.#unkeep(entry)
      return entry
    }
    return undefined
  }

  /** @param answer undefined for one that cannot be given again */
  answer (attempt: Attempt, answer: Answer | undefined): void {
    const entry = this.#find(attempt)
    if (entry === undefined) return
    if (answer === undefined) {
      this.end(entry)
      return
    }
    entry.answer = answer
    entry.tell(answer)
    if (!entry.isHeld) this.#keep(entry)
  }

  /** Its client has gone without the answer: the attempt's own, or that of the repeat that has taken it. */
  giveUp (attempt: Attempt): void {
    const entry = this.#find(attempt)
    if (entry === undefined) return
    entry.isHeld = false
    if (entry.answer !== undefined) this.#keep(entry)
  }

  /** It was answered, or will not be. */
  end (attempt: Attempt): void {
    const entry = this.#find(attempt)
    if (entry === undefined) return
    this.#unkeep(entry)
    const equal = this.#byId.get(entry.id)
    equal?.delete(entry)
    if (equal?.size === 0) this.#byId.delete(entry.id)
    entry.tell(undefined)
  }

  clear (): void {
    for (const equal of [...this.#byId.values()]) for (const entry of [...equal]) this.end(entry)
  }

  #equalTo (id: string): readonly Entry[] {
    return [...this.#byId.get(id) ?? []]
  }

  /** Undefined once it is over. */
  #find (attempt: Attempt): Entry | undefined {
    return this.#equalTo(attempt.id).find((entry) => entry === attempt)
  }

  #keep (entry: Entry): void {
    const { answer } = entry
    if (answer === undefined) return
    if (isPassing(answer)) {
      this.end(entry)
      return
    }
    this.#kept.add(entry)
    this.#bytes += answer.body.length
    entry.timer = setTimeout(() => { this.end(entry) }, this.#keepMs).unref()
    for (const oldest of this.#kept) {
      if (this.#kept.size <= this.#most && this.#bytes <= this.#mostBytes) return
      this.end(oldest)
    }
  }

  #unkeep (entry: Entry): void {
    if (!this.#kept.delete(entry)) return
    clearTimeout(entry.timer)
    this.#bytes -= entry.answer?.body.length ?? 0
  }
}

function isPassing ({ status }: Answer): boolean {
  return PASSING.has(status) || (status >= 500 && status !== 501)
}
