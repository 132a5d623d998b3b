// How much of one VM is between nothing and an open connection, or between a connection's last use and its end: names that are resolved, addresses that are dialled, connections that close.
// No request counts for it any more once its guest has given it up, so it has a bound of its own.
import { Refusal } from '../contract/reasons.ts'

export class Passing {
  readonly #most: number
  #count = 0

  /** @param requests that may be under way: each needs at most one of these at a time, and as many again may be left of those before */
  constructor (requests: number) {
    this.#most = 2 * requests
  }

  /** Counts one more; the returned function takes it back. @throws Refusal */
  begin (): () => void {
    if (this.#count >= this.#most) throw new Refusal('too_many_requests')
    return this.add()
  }

  /** Counts what cannot be refused. */
  add (): () => void {
    this.#count++
    return () => { this.#count-- }
  }
}
