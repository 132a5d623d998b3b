// The server's own log, for the routes.
import { createId } from '@paralleldrive/cuid2'
import { OpenStreams } from '../../../core/http/open-streams.ts'
import type { Owner } from '../../../core/jobs/shares.ts'
import type { RecentLog } from '../../../core/logging/recent.ts'
import { TooManyFollowers } from '../errors.ts'
import { follow, type FollowOptions } from './follow.ts'
import { newestLines, type NewestLines, type Wanted } from './lines.ts'

export class Log {
  readonly #recent: RecentLog
  readonly #followers: OpenStreams
  readonly #run = createId()

  constructor (recent: RecentLog, maxFollowers: number) {
    this.#recent = recent
    this.#followers = new OpenStreams(maxFollowers, TooManyFollowers)
  }

  newest (wanted: Wanted): NewestLines {
    return newestLines(this.#recent, this.#run, wanted)
  }

  /** @throws too_many_streams */
  async follow (options: Pick<FollowOptions, 'limit' | 'level' | 'after'>, owner: Owner, signal: AbortSignal): Promise<AsyncGenerator<string, void, void>> {
    return await this.#followers.begin(owner, signal, async () => follow({ ...options, log: this.#recent, run: this.#run, signal }))
  }
}
