// How many wrong keys one address may try before it has to wait. Keys are 256 random bits and cannot be guessed: this slows down attempts, and never blocks a right key, which may come from the same address (a proxy in front of this server has one for all its clients).
const WINDOW_MS = 60_000
const MOST = 10
const MAX_ADDRESSES = 10_000

interface Window { count: number, readonly endsAt: number }

export class Attempts {
  readonly #elapsed: () => number
  readonly #byAddress = new Map<string, Window>()

  constructor (elapsed: () => number = () => performance.now()) {
    this.#elapsed = elapsed
  }

  /** Counts a wrong key. @returns the number of seconds after which the address may try again; 0: now */
  note (address: string): number {
    const now = this.#elapsed()
    const known = this.#byAddress.get(address)
    if (known !== undefined && known.endsAt > now) {
      known.count++
      return known.count <= MOST ? 0 : Math.ceil((known.endsAt - now) / 1000)
    }
    if (this.#byAddress.size >= MAX_ADDRESSES) this.#byAddress.clear()
    this.#byAddress.set(address, { count: 1, endsAt: now + WINDOW_MS })
    return 0
  }
}
