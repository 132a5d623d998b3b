// Where a content can be had: the repositories that callers have named for its digest. One after the other has its turn, so that nobody's image depends on a registry that only somebody else has named.
import { sameCredentials } from '../../core/library/oci/credentials.ts'
import type { RegistryCredentials } from './contract.ts'
import { PullFailure } from './failures.ts'

export interface Source {
  readonly repository: string
  readonly credentials: RegistryCredentials | undefined
}

/** A turn that is not over after this time is judged by what has come in it. */
const FIRST_MS = 10_000
/** Slower than any registry that is of use, also by a bad link. */
const SLOW_BYTES_PER_SECOND = 100_000

interface Waiting extends Source { readonly patienceMs: number }

export interface Turn {
  readonly source: Source
  /** aborts when the source is slow while another one waits */
  readonly signal: AbortSignal
  /** @param bytes all of this turn */
  received (bytes: number): void
  /** Everything has come: from now on the source is not slow. */
  complete (): void
  /** Over. A source that was only slow gets a longer turn after the others: they may be slow, too. */
  readonly end: () => void
}

export class Sources {
  readonly #waiting: Waiting[] = []
  #current: Source | undefined

  /** Adds a source to the end of the line, unless it is in it already or has its turn. */
  add ({ repository, credentials }: Source): void {
    const known = [...this.#waiting, ...this.#current === undefined ? [] : [this.#current]]
    if (!known.some((source) => source.repository === repository && sameCredentials(source.credentials, credentials))) this.#waiting.push({ repository, credentials, patienceMs: FIRST_MS })
  }

  /** The source that has its turn, or is the next one to have it. */
  get current (): Source | undefined {
    return this.#current ?? this.#waiting[0]
  }

  /** Begins the turn of the next source; undefined when none is left. */
  begin (): Turn | undefined {
    const source = this.#waiting.shift()
    if (source === undefined) return undefined
    this.#current = source
    const controller = new AbortController()
    let [bytes, before] = [0, 0]
    const timer = setInterval(() => {
      const came = bytes - before
      before = bytes
      if (this.#waiting.length > 0 && came < SLOW_BYTES_PER_SECOND * source.patienceMs / 1000) controller.abort(new PullFailure('timeout', `${source.repository} sends less than ${SLOW_BYTES_PER_SECOND} bytes per second, and another registry has the image, too`))
    }, source.patienceMs).unref()
    return {
      source,
      signal: controller.signal,
      received: (all) => { bytes = all },
      complete: () => { clearInterval(timer) },
      end: () => {
        clearInterval(timer)
        this.#current = undefined
        if (controller.signal.aborted) this.#waiting.push({ ...source, patienceMs: 2 * source.patienceMs })
      }
    }
  }
}
