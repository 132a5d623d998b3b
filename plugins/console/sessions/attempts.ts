// How many wrong keys one address, and all together, may try. Keys cannot be guessed; this keeps somebody who tries from being any work.
const WINDOW_MS = 60_000
const MOST_OF_ONE = 10
const MOST_OF_ALL = 300
const MAX_ADDRESSES = 10_000

interface Window { count: number, readonly endsAt: number }

export class Attempts {
  readonly #elapsed: () => number
  readonly #byAddress = new Map<string, Window>()
  #all: Window = { count: 0, endsAt: 0 }

  constructor (elapsed: () => number = () => performance.now()) {
    this.#elapsed = elapsed
  }

  /** After how many seconds the address may try again; 0: now. */
  wait (address: string): number {
    const own = this.#byAddress.get(address)
    return Math.max(own === undefined ? 0 : this.#left(own, MOST_OF_ONE), this.#left(this.#all, MOST_OF_ALL))
  }

  /** A key was wrong. */
  note (address: string): void {
    const endsAt = this.#elapsed() + WINDOW_MS
    if (this.#all.endsAt <= this.#elapsed()) this.#all = { count: 0, endsAt }
    this.#all.count++
    const own = this.#byAddress.get(address)
    if (own !== undefined && own.endsAt > this.#elapsed()) {
      own.count++
      return
    }
    if (this.#byAddress.size >= MAX_ADDRESSES) this.#byAddress.clear()
    this.#byAddress.set(address, { count: 1, endsAt })
  }

  #left ({ count, endsAt }: Window, most: number): number {
    return count < most ? 0 : Math.max(0, Math.ceil((endsAt - this.#elapsed()) / 1000))
  }
}
