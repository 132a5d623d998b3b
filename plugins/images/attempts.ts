// Asks registries for the digests of names, one query per name at a time, and points the names at the digests.
import type { Logger } from '../../core/contracts/services.ts'
import { BerthError } from '../../core/errors/define.ts'
import { nowOrLater } from '../../core/jobs/now-or-later.ts'
import { laterOnce } from '../../core/jobs/until-done.ts'
import type { ImageReference } from '../../core/library/oci/reference.ts'
import type { Contents } from './contents.ts'
import type { RegistryCredentials } from './contract.ts'
import { asAnswer, explain } from './failures.ts'
import type { ContentRow } from './record.ts'
import type { Resolved } from './resolver.ts'
import type { ImagesRepository } from './repository.ts'

export interface Request {
  readonly reference: ImageReference
  readonly credentials?: RegistryCredentials | undefined
  readonly tags?: Readonly<Record<string, string>> | undefined
  /** no caller waits for the answer; a failure is stored in any case */
  readonly background?: boolean
  /** started by a push: a name that turns out to be no image is forgotten */
  readonly pushed?: boolean
}

export interface Attempt {
  readonly request: Request
  /** Rejects with an error for callers who still wait: no such image, no such platform, rate limited. Every other result is stored. */
  readonly done: Promise<void>
}

interface Course {
  readonly request: Request
  readonly controller: AbortController
  /** a failure must be stored, since no caller gets it */
  recorded: boolean
}
type Running = Course & Attempt

export interface AttemptsDeps {
  readonly repository: ImagesRepository
  readonly contents: Contents
  readonly log: Logger
  readonly platform: string
  readonly waitMs: number
  readonly resolve: (reference: ImageReference, credentials: RegistryCredentials | undefined, signal: AbortSignal) => Promise<Resolved>
  readonly changed: (name: string) => Promise<void>
}

export class Attempts {
  readonly #deps: AttemptsDeps
  readonly #running = new Map<string, Running>()
  readonly #closing = new AbortController()
  /** the names that are looked at again until it is certain that something goes on for them */
  readonly #later = new Set<string>()

  constructor (deps: AttemptsDeps) {
    this.#deps = deps
  }

  get (name: string): Attempt | undefined {
    return this.#running.get(name)
  }

  /** Starts an attempt, or joins the running one for the same name. */
  begin (request: Request): Attempt {
    const { name } = request.reference
    const joined = this.#running.get(name)
    if (joined !== undefined) return joined
    const controller = new AbortController()
    if (this.#closing.signal.aborted) controller.abort()
    const course: Course = { request, controller, recorded: request.background === true }
    const done = this.#run(course).finally(() => this.#running.delete(name))
    // This rejection is for a waiting caller, and there may be none any more; anything else is a bug.
    done.catch((error: unknown) => {
      if (!(error instanceof BerthError)) this.#deps.log.error({ err: error, image: name }, 'an image reference could not be looked up')
    })
    const attempt = Object.assign(course, { done })
    this.#running.set(name, attempt)
    return attempt
  }

  /** Waits for the answer as long as a caller can be kept waiting. */
  async outcome (attempt: Attempt): Promise<void> {
    const running = this.#running.get(attempt.request.reference.name)
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        if (running === attempt) running.recorded = true
        resolve()
      }, this.#deps.waitMs)
    })
    try {
      await Promise.race([attempt.done, late])
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * Ends the running attempt for a name, if any, and then does what takes its place. Should that fail, the name would go on being looked up without anybody who does, so the attempt begins
   * again later; whoever asked is told all the same.
   */
  async replace<T> (wanted: Pick<Request, 'reference' | 'pushed'>, work: () => Promise<T>): Promise<T> {
    const { name } = wanted.reference
    const request = { ...this.#running.get(name)?.request, ...wanted }
    await this.#cancel(name)
    return await nowOrLater(work, () => {
      this.#settleLater(request)
      // It may have been done, and only its answer lost: with the name, what it meant before.
      this.#deps.contents.collectLater()
    })
  }

  async #cancel (name: string): Promise<void> {
    const running = this.#running.get(name)
    if (running === undefined) return
    running.controller.abort()
    await running.done.catch(() => undefined)
  }

  /** Ends all attempts; the next start repeats them. */
  async close (): Promise<void> {
    this.#closing.abort()
    await Promise.all([...this.#running.keys()].map((name) => this.#cancel(name)))
  }

  /** Begins an attempt again, as the next start of the server would, if its name still waits for one and nothing goes on. */
  #settleLater (request: Request): void {
    const { repository, contents } = this.#deps
    const { reference: { name } } = request
    laterOnce(this.#later, name, async () => {
      const tag = await repository.tag(name)
      if (tag === undefined || this.#running.has(name)) return
      const isLost = tag.nextDigest !== undefined && contents.inFlight(tag.nextDigest) === undefined && isUnfinished(await repository.content(tag.nextDigest))
      if (tag.state === 'resolving' || isLost) this.begin({ ...request, background: true })
    }, this.#closing.signal)
  }

  async #run (attempt: Course): Promise<void> {
    // What fails here was not stored, or was stored and the answer lost.
    const answer = await nowOrLater(async () => await this.#lookUpAndStore(attempt), () => { this.#settleLater(attempt.request) })
    if (answer !== undefined) throw answer
  }

  /** Resolves with an error for callers who still wait. */
  async #lookUpAndStore (attempt: Course): Promise<BerthError | undefined> {
    const { request: { reference, tags }, controller: { signal } } = attempt
    const isNew = await this.#deps.repository.beginAttempt({ name: reference.name, repository: reference.repository, tags })
    try {
      await this.#deps.changed(reference.name)
      const resolved = await this.#lookUp(attempt.request, signal)
      signal.throwIfAborted()
      await this.#point(attempt.request, resolved)
    } catch (error) {
      // The image was deleted, or the server stops; the row is gone, or says that the attempt is unfinished.
      if (signal.aborted) return undefined
      return await this.#fail(attempt, isNew, error)
    }
    await this.#deps.changed(reference.name)
    return undefined
  }

  async #lookUp ({ reference, credentials }: Request, signal: AbortSignal): Promise<Resolved> {
    const { digest } = reference
    const here = digest === undefined ? undefined : await this.#deps.repository.content(digest)
    // a digest always means the same content: when it is here, the registry need not be asked
    if (here?.status === 'ready') return { digest: here.digest, layerBytes: here.layerBytes, recompress: here.recompress }
    return this.#deps.resolve(reference, credentials, signal)
  }

  // First the name, then the content: a content without a name would be collected.
  async #point ({ reference, credentials }: Request, resolved: Resolved): Promise<void> {
    const { repository, contents, platform } = this.#deps
    const before = await repository.point(reference.name, resolved.digest, 'when-ready')
    if (before === undefined) return
    try {
      const isReady = await contents.ensure({ ...resolved, repository: reference.repository, platform, credentials })
      if (isReady) await repository.point(reference.name, resolved.digest, 'now')
    } finally {
      // Whatever becomes of the new one: nobody else knows what the name was to mean before.
      await contents.collect(before.filter((digest) => digest !== resolved.digest))
    }
  }

  async #fail (attempt: Course, isNew: boolean, error: unknown): Promise<BerthError | undefined> {
    const { repository, log } = this.#deps
    const { name } = attempt.request.reference
    const failure = explain(error, name)
    const answer: BerthError | undefined = asAnswer(failure, name)
    log.info({ err: failure, image: name }, 'an image reference could not be resolved')
    const told = answer !== undefined && !attempt.recorded
    if (attempt.request.pushed === true && failure.reason === 'not-an-image') await this.#forget(name)
    else if (isNew && told) await repository.removeTag(name)
    else await repository.endAttempt(name, 'failed', answer?.message ?? failure.message)
    await this.#deps.changed(name)
    return told ? answer : undefined
  }

  // Pushed artifacts that are no images (charts, build caches) concern only the registry.
  async #forget (name: string): Promise<void> {
    const tag = await this.#deps.repository.tag(name)
    if (tag?.digest === undefined && tag?.nextDigest === undefined) await this.#deps.repository.removeTag(name)
    else await this.#deps.repository.endAttempt(name, 'resolved')
  }
}

/** Neither here nor failed: somebody has to pull it. */
function isUnfinished (content: ContentRow | undefined): boolean {
  return content?.status !== 'ready' && content?.status !== 'failed'
}
