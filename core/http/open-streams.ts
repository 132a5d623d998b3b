// Limits how many streams without an end are open at the same time, and how many of them one key may have, so that no key takes all.
import { createShares, type Owner, type Shares } from '../jobs/shares.ts'

/** One key may have one of so many; the configuration's, too: a script of the operator's that leaves its streams open must not shut out the others. */
const KEYS_PART = 4

export class OpenStreams {
  readonly #open = new Set<number>()
  readonly #shares: Shares
  #latest = 0

  /** @param refuse makes the error for a caller that asks for more; whose: `the key "ci"`, or `this server` */
  constructor (most: number, refuse: (whose: string, most: number) => Error) {
    this.#shares = createShares({ perOwner: Math.ceil(most / KEYS_PART), inAll: most, isOver: async (id) => !this.#open.has(Number(id)), refuse })
  }

  get count (): number { return this.#open.size }

  /** Opens a stream, which is open until `signal` aborts. @throws the error of `refuse`, and what `open` throws */
  async begin<T> (owner: Owner, signal: AbortSignal, open: () => Promise<T>): Promise<T> {
    const id = ++this.#latest
    return await this.#shares.begin(owner, async () => {
      const stream = await open()
      // The connection may end before anything of the stream was read.
      if (!signal.aborted) {
        this.#open.add(id)
        signal.addEventListener('abort', () => { this.#open.delete(id) }, { once: true })
      }
      return stream
    }, () => String(id))
  }
}
