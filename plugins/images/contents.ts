// Pulls contents, one job per digest from one source after the other, and removes those that nobody needs. Owns the rows and folders of contents.
import type { JobQueue, Logger } from '../../core/contracts/services.ts'
import type { DiskSpace } from '../../core/fs/disk-space.ts'
import { doUntilDone, laterOnce, untilDone } from '../../core/jobs/until-done.ts'
import { atDigest } from '../../core/library/oci/reference.ts'
import type { ImageSources, OpenRegistry, RegistryAccess, RegistryCredentials } from './contract.ts'
import { convert, type Conversion } from './convert.ts'
import { guardDisk, type DiskGuard } from './disk-guard.ts'
import { explain } from './failures.ts'
import type { Folders, StoredContent } from './folders.ts'
import type { Locks } from '../../core/jobs/locks.ts'
import type { ImagesMetrics } from './metrics.ts'
import type { ContentRow } from './record.ts'
import type { ImagesRepository, NewContent } from './repository.ts'
import { Sources, type Source, type Turn } from './sources.ts'

export interface Wanted extends NewContent, Source {}

export interface ContentsDeps extends Pick<Conversion, 'owners' | 'host' | 'compression' | 'timeoutMs'> {
  readonly repository: ImagesRepository
  readonly folders: Folders
  readonly queue: JobQueue
  readonly locks: Locks
  readonly log: Logger
  readonly minFreeBytes: number
  readonly disk: DiskSpace
  readonly openUpstream: (options: OpenRegistry) => Promise<RegistryAccess>
  readonly skopeo: ImageSources['skopeo']
  readonly metrics: ImagesMetrics
  /** notifies every name of this digest */
  readonly changed: (digest: string) => Promise<void>
  /** notifies them how many bytes of the total have come */
  readonly progressed: (digest: string, received: number, total: number) => Promise<void>
}

// What the manifest says of the content is the same in every source, by its digest.
interface Job { readonly id: string, readonly wanted: NewContent, readonly sources: Sources, done: Promise<void>, cancelled: boolean }

// Rough: the space of an image while its layers, its files and its root file system exist side by side.
const UNPACKED_FACTOR = 2

export class Contents {
  readonly #deps: ContentsDeps
  readonly #jobs = new Map<string, Job>()
  readonly #ending = new Set<Promise<void>>()
  readonly #closing = new AbortController()
  /** digests of contents whose removal is tried again */
  readonly #later = new Set<string>()
  #count = 0

  constructor (deps: ContentsDeps) {
    this.#deps = deps
  }

  /** Makes sure that a content is pulled; true when it is here already. */
  ensure (wanted: Wanted): Promise<boolean> {
    return this.#locked(wanted.digest, async () => {
      const job = this.#jobs.get(wanted.digest)
      job?.sources.add(wanted)
      if (job !== undefined) return false
      const row = await this.#deps.repository.content(wanted.digest)
      if (row?.status === 'ready' && await this.#deps.folders.read(wanted.digest) !== undefined) {
        if (row.layerCount === undefined && wanted.layers !== undefined) await this.#deps.repository.addLayers(wanted.digest, wanted.layers)
        return true
      }
      await this.#deps.repository.wantContent(wanted)
      this.#start(wanted, [wanted])
      return false
    })
  }

  position (digest: string): number | undefined {
    const job = this.#jobs.get(digest)
    return job === undefined ? undefined : this.#deps.queue.position(job.id)
  }

  /** The number of pulls that wait for their turn. */
  waiting (): number {
    return [...this.#jobs.values()].filter((job) => this.#deps.queue.position(job.id) !== undefined).length
  }

  /** The credentials with which a content is being pulled now; undefined when it is not being pulled. */
  inFlight (digest: string): { readonly credentials: RegistryCredentials | undefined } | undefined {
    return this.#jobs.get(digest)?.sources.current
  }

  /** Removes those of the contents that no name and no holder needs; also ends their pulls. Never rejects: whoever gave one up is done with it, and what fails is logged, and tried again for as long as it takes. */
  async collect (digests: readonly string[]): Promise<void> {
    for (const digest of new Set(digests)) {
      await this.#collect(digest).catch((error: unknown) => {
        this.#deps.log.warn({ err: error, digest }, 'an image that nothing uses any more could not be removed; it is tried again')
        laterOnce(this.#later, digest, async () => { await this.#collect(digest) }, this.#closing.signal)
      })
    }
  }

  /** The same of all contents, later: for when it is not known which ones a name meant. */
  collectLater (): void {
    laterOnce(this.#later, 'all', async () => { await this.collect((await this.#deps.repository.contents()).map(({ digest }) => digest)) }, this.#closing.signal)
  }

  async #collect (digest: string): Promise<void> {
    await this.#locked(digest, async () => {
      const { repository, folders } = this.#deps
      if (!await repository.giveUpContent(digest)) return
      this.#cancel(digest)
      // The row goes last: only files that a row knows are ever removed.
      await folders.discard(digest)
      await repository.removeContent(digest)
    })
  }

  /** Reconciles disk and database after a start, and resumes what was interrupted. */
  async recover (): Promise<void> {
    const { folders, repository, log } = this.#deps
    const { digests: onDisk, remains } = await folders.open()
    if (remains.length > 0) log.warn({ folders: remains }, 'these are left of work on images, and cannot be removed; the next start tries it again')
    const named = new Set((await repository.tags()).flatMap((tag) => [tag.digest, tag.nextDigest]))
    const known = new Set((await repository.contents()).map(({ digest }) => digest))
    // They are never removed: with a wrong database.url, all contents look strange.
    const strangers = onDisk.filter((digest) => !known.has(digest))
    if (strangers.length > 0) {
      const sizes = await Promise.all(strangers.map(async (digest) => (await folders.read(digest).catch(() => undefined))?.sizeBytes ?? 0))
      log.warn({ folders: strangers.map((digest) => folders.folder(digest)), bytes: sizes.reduce((sum, bytes) => sum + bytes, 0) },
        'these are no images that this server knows; they are left alone. Unless another database knows them they may be removed by hand')
    }
    await this.collect([...known].filter((digest) => !named.has(digest)))
    for (const row of await repository.contents()) {
      // One that nobody uses and that cannot be removed now is not pulled again for that.
      if (row.status === 'failed' || this.#later.has(row.digest)) continue
      if (row.status === 'ready') {
        if (await folders.read(row.digest) !== undefined) continue
        log.warn({ digest: row.digest }, 'the files of an image are gone; it is pulled again')
      }
      await repository.setStatus(row.digest, 'pending')
      const others = await repository.awaitedRepositories(row.digest)
      this.#start(row, [row.repository, ...others].map((name) => ({ repository: name, credentials: undefined })))
    }
  }

  /** Ends running pulls; the next start resumes them. */
  async close (): Promise<void> {
    this.#closing.abort()
    for (const digest of [...this.#jobs.keys()]) this.#cancel(digest)
    await this.#deps.queue.close()
    await Promise.all(this.#ending)
  }

  #locked<T> (digest: string, work: () => Promise<T>): Promise<T> {
    return this.#deps.locks.hold(`content:${digest}`, work)
  }

  #start (wanted: NewContent, from: readonly Source[]): void {
    const sources = new Sources()
    for (const source of from) sources.add(source)
    // A fresh id each time: a cancelled job of the same digest may still be cleaning up.
    const job: Job = { id: `${wanted.digest}#${++this.#count}`, wanted, sources, done: Promise.resolve(), cancelled: false }
    this.#jobs.set(wanted.digest, job)
    job.done = this.#deps.queue.push(job.id, (signal) => this.#build(job, signal)).catch((error: unknown) => {
      if (!job.cancelled) this.#deps.log.error({ err: error, digest: wanted.digest }, 'an image job ended unexpectedly')
    }).finally(() => {
      if (this.#jobs.get(wanted.digest) === job) this.#jobs.delete(wanted.digest)
      this.#ending.delete(job.done)
    })
    this.#ending.add(job.done)
  }

  #cancel (digest: string): void {
    const job = this.#jobs.get(digest)
    if (job === undefined) return
    job.cancelled = true
    this.#jobs.delete(digest)
    this.#deps.queue.cancel(job.id)
  }

  async #build (job: Job, signal: AbortSignal): Promise<void> {
    const { metrics, changed, log } = this.#deps
    const startedAt = performance.now()
    const seconds = (): number => (performance.now() - startedAt) / 1000
    for (let next = job.sources.begin(); next !== undefined;) {
      const turn = next
      try {
        await this.#pull(job.wanted, turn, signal)
        return metrics.pulled(signal.aborted ? 'cancelled' : 'success', seconds())
      } catch (error) {
        if (this.#isStored(job)) {
          log.warn({ err: error, digest: job.wanted.digest }, 'the pull of an image has left something behind, which the next start removes')
          return metrics.pulled('success', seconds())
        }
        next = await this.#next(job, turn, error, signal)
      } finally {
        turn.complete()
      }
    }
    // Deleted: the row is gone. The server stops: the row stays as it is, and the next start resumes it.
    if (signal.aborted) return metrics.pulled('cancelled', seconds())
    metrics.pulled('failed', seconds())
    await changed(job.wanted.digest)
  }

  /** Whether the content of a job that still runs is here: whatever fails from then on is no failure of its pull. */
  #isStored (job: Job): boolean {
    return !job.cancelled && this.#jobs.get(job.wanted.digest) !== job
  }

  /** After a turn that brought nothing: that of the next source, or the failure of all. */
  async #next ({ wanted: { digest }, sources }: Job, { source, end }: Turn, error: unknown, signal: AbortSignal): Promise<Turn | undefined> {
    const { repository, log } = this.#deps
    const failure = explain(error, atDigest(source.repository, digest))
    let turn: Turn | undefined
    end()
    // However long the database is away: nobody else would, and the image would seem to be on its way for ever.
    await doUntilDone(async () => await this.#locked(digest, async () => {
      if (signal.aborted) return
      const next = sources.current
      log.warn({ err: failure, digest }, next === undefined ? 'an image could not be pulled' : 'an image could not be pulled from one of the registries that were named; the next one is asked')
      if (next !== undefined) await repository.setSource(digest, next.repository)
      else await repository.setStatus(digest, 'failed', failure.message)
      turn = sources.begin()
      // Whoever wants it from now on begins anew.
      if (turn === undefined) this.#jobs.delete(digest)
    }), signal, (cause) => {
      log.warn({ err: cause, digest }, 'the failure of a pull could not be stored yet; it is tried again')
    })
    return turn
  }

  async #pull (wanted: NewContent, turn: Turn, signal: AbortSignal): Promise<void> {
    const { disk, folders, openUpstream, minFreeBytes } = this.#deps
    const { digest, layerBytes } = wanted
    // a crash between the last rename and the commit leaves a finished content
    const left = await folders.read(digest)
    if (left !== undefined) return this.#finish(left, undefined, signal)
    await this.#status(digest, 'pulling')
    const guard = await guardDisk(() => folders.freeBytes(), minFreeBytes, layerBytes * UNPACKED_FACTOR, disk)
    const work = await folders.temporary()
    try {
      const upstream = await openUpstream({ ...turn.source, folder: work, signal: AbortSignal.any([signal, turn.signal]) })
      try {
        await this.#convert(wanted, { turn, upstream, work, guard, signal })
      } finally {
        await upstream.close()
      }
    } finally {
      guard.stop()
      await folders.clear(work)
    }
  }

  async #convert ({ digest, recompress, layerBytes }: NewContent, run: { turn: Turn, upstream: RegistryAccess, work: string, guard: DiskGuard, signal: AbortSignal }): Promise<void> {
    const { owners, skopeo, folders, host, compression, timeoutMs, progressed, log } = this.#deps
    const { turn } = run
    const made = await convert({
      owners,
      skopeo,
      folders,
      host,
      compression,
      timeoutMs,
      digest,
      recompress,
      layerBytes,
      name: atDigest(turn.source.repository, digest),
      upstream: run.upstream,
      work: run.work,
      signal: AbortSignal.any([run.signal, run.guard.signal, turn.signal]),
      received: (bytes) => {
        turn.received(bytes)
        progressed(digest, bytes, layerBytes).catch((error: unknown) => { log.debug({ err: error }, 'the progress of a pull could not be told') })
      },
      converting: async () => {
        turn.complete()
        await this.#status(digest, 'converting')
      }
    })
    await this.#finish(made.content, made.folder, run.signal)
  }

  async #finish (content: StoredContent, folder: string | undefined, signal: AbortSignal): Promise<void> {
    const { folders, repository, changed, log } = this.#deps
    const replaced: readonly string[] | undefined = await this.#locked(content.digest, async () => {
      if (signal.aborted || await repository.content(content.digest) === undefined) return undefined
      if (folder !== undefined) {
        await folders.discard(content.digest)
        await folders.publish(folder, content)
      }
      const before = await this.#store(content, signal)
      // Whoever wants it from now on finds it.
      this.#jobs.delete(content.digest)
      return before
    })
    if (replaced === undefined) return
    const tell = async (): Promise<void> => { await changed(content.digest) }
    await tell().catch((error: unknown) => {
      log.warn({ err: error, digest: content.digest }, 'nobody could be told yet that an image is here; it is tried again')
      void untilDone(tell, this.#closing.signal)
    })
    await this.collect(replaced)
  }

  /** Like the repository's. When the answer is lost, it is looked up whether it was stored; what the names had before is not known then, and may be any content. */
  async #store (content: StoredContent, signal: AbortSignal): Promise<readonly string[] | undefined> {
    const { repository, log } = this.#deps
    try {
      return await repository.finish(content)
    } catch (error) {
      let isStored = false
      await doUntilDone(async () => { isStored = (await repository.content(content.digest))?.status === 'ready' }, signal, (cause) => {
        log.warn({ err: cause, digest: content.digest }, 'it could not be looked up yet whether a pull was stored; it is tried again')
      })
      if (!isStored) throw error
      return (await repository.contents()).map(({ digest }) => digest).filter((digest) => digest !== content.digest)
    }
  }

  async #status (digest: string, status: ContentRow['status']): Promise<void> {
    await this.#deps.repository.setStatus(digest, status)
    await this.#deps.changed(digest)
  }
}
