// The server's own log, for the routes.
import { createId } from '@paralleldrive/cuid2'
import type { RecentLog } from '../../../core/logging/recent.ts'
import { TooManyFollowers } from '../errors.ts'
import { follow, type FollowOptions } from './follow.ts'
import { newestLines, type NewestLines, type Wanted } from './lines.ts'

export class Log {
  readonly #recent: RecentLog
  readonly #maxFollowers: number
  readonly #run = createId()
  #followers = 0

  constructor (recent: RecentLog, maxFollowers: number) {
    this.#recent = recent
    this.#maxFollowers = maxFollowers
  }

  newest (wanted: Wanted): NewestLines {
    return newestLines(this.#recent, this.#run, wanted)
  }

  /** @throws too_many_streams */
  follow (options: Pick<FollowOptions, 'limit' | 'level' | 'after'>, signal: AbortSignal): AsyncGenerator<string, void, void> {
    if (this.#followers >= this.#maxFollowers) throw TooManyFollowers(this.#maxFollowers)
    this.#followers++
    signal.addEventListener('abort', () => { this.#followers-- }, { once: true })
    if (signal.aborted) this.#followers--
    return follow({ ...options, log: this.#recent, run: this.#run, signal })
  }
}
