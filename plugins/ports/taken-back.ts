// Rows of ports that nobody has been told of: removed as soon as that works, since a row keeps its place from others, and is served by the next server.
import { untilDone } from '../../core/jobs/until-done.ts'

export class TakenBack {
  readonly #remove: (ids: readonly string[]) => Promise<void>
  readonly #closing = new AbortController()
  readonly #going = new Set<Promise<void>>()

  constructor (remove: (ids: readonly string[]) => Promise<void>) {
    this.#remove = remove
  }

  /** Returns at once. */
  add (ids: readonly string[]): void {
    const going = this.#see(ids).finally(() => { this.#going.delete(going) })
    this.#going.add(going)
  }

  /** What is left is tried once more. Never rejects. */
  async close (): Promise<void> {
    this.#closing.abort()
    await Promise.all(this.#going)
  }

  async #see (ids: readonly string[]): Promise<void> {
    const isDone = await untilDone(async () => { await this.#remove(ids) }, this.#closing.signal)
    if (!isDone) await this.#remove(ids).catch(() => {})
  }
}
