// An unfinished build, as the server that runs it knows it.
import type { BuildLog } from './events/build-log.ts'

export class LiveBuild {
  readonly id: string
  readonly builderId: string | null
  readonly log: BuildLog
  /** aborts with the error that ends the build */
  readonly controller = new AbortController()
  /** resolves when nothing of it is left to do */
  readonly ended: Promise<void>
  #end = (): void => {}

  constructor (id: string, builderId: string | null, log: BuildLog) {
    this.id = id
    this.builderId = builderId
    this.log = log
    this.ended = new Promise((resolve) => { this.#end = resolve })
  }

  end (): void {
    this.#end()
  }
}
