// Limits uploads: how many an owner has open, how many bytes they have, and how much disk space is left while they stream. An upload is tracked from the request
// that begins it until it is finished or removed; an abandoned one is removed.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Logger } from '../../core/contracts/services.ts'
import type { DiskSpace } from '../../core/fs/disk-space.ts'
import { formatSize } from '../../core/units.ts'
import { refuseMidway } from './refuse-midway.ts'
import type { RegistryRequest } from './requests.ts'
import type { Store } from './store.ts'

const MAX_OPEN = 256
/** methods whose bodies the store writes */
const WRITING: ReadonlySet<string | undefined> = new Set(['PATCH', 'PUT'])
/** a client that pauses longer during an upload must start over */
const IDLE_MS = 3_600_000
const SWEEP_MS = 60_000
/** The store records an upload's progress when it notices that the client has stopped, in a folder that it then makes again. */
const REMOVAL_DELAYS_MS = [0, 1000, 10_000]

export interface UploadsOptions {
  readonly disk: DiskSpace
  readonly store: Pick<Store, 'dropUpload'>
  readonly log: Logger
  /** bytes that all unfinished uploads of one owner may have */
  readonly maxBytes: number
  readonly clock?: () => number
}

interface Upload {
  readonly repository: string
  readonly owner: string
  bytes: number
  requests: number
  idleSince: number
}

export class Uploads {
  readonly #options: UploadsOptions
  readonly #clock: () => number
  /** by the store's upload id */
  readonly #open = new Map<string, Upload>()
  /** how many requests that begin uploads have no answer yet, by owner */
  readonly #beginning = new Map<string, number>()
  readonly #sweep: NodeJS.Timeout

  constructor (options: UploadsOptions) {
    this.#options = options
    this.#clock = options.clock ?? (() => performance.now())
    this.#sweep = setInterval(() => { this.removeIdle() }, SWEEP_MS)
    this.#sweep.unref()
  }

  close (): void {
    clearInterval(this.#sweep)
  }

  /**
   * Watches one request about an upload, or one that pushes. Must be called right after it was passed to the store, before any of its body has come.
   * @param owner a key's id, or a grant's: whose limit it counts for
   */
  attend (request: IncomingMessage, response: ServerResponse, asked: RegistryRequest, owner: string): void {
    if (asked.upload !== undefined) this.#attendUpload(request, response, asked.upload)
    // Who asks how far an upload is, or ends it, needs no room.
    if (asked.push !== undefined || (asked.upload !== undefined && WRITING.has(request.method))) this.#attendBody(request, response, asked, owner)
  }

  /** Why an upload may not begin; undefined when it may. */
  refusal (asked: RegistryRequest, owner: string): string | undefined {
    if (asked.startsUpload !== true) return undefined
    const open = [...this.#open.values()].filter((upload) => upload.owner === owner).length + (this.#beginning.get(owner) ?? 0)
    return open < MAX_OPEN ? undefined : `${open} uploads are unfinished already; finish or delete some of them`
  }

  /**
   * Counts an upload that begins. Must be called right after `refusal` has found none.
   * @returns to be called when its beginning is over, with the store's id if there is an upload now; further calls do nothing
   */
  begin (response: ServerResponse, { repository = '' }: RegistryRequest, owner: string): (id?: string) => void {
    this.#beginning.set(owner, (this.#beginning.get(owner) ?? 0) + 1)
    let isOver = false
    return (id) => {
      if (isOver) return
      isOver = true
      const others = (this.#beginning.get(owner) ?? 1) - 1
      if (others > 0) this.#beginning.set(owner, others)
      else this.#beginning.delete(owner)
      if (id === undefined) return
      this.#open.set(id, { repository, owner, bytes: 0, requests: 0, idleSince: this.#clock() })
      // A client that has left before it had the answer cannot continue it.
      const ended = (): void => { if (!response.writableFinished) this.#remove(id) }
      if (response.destroyed) ended()
      else response.once('close', ended)
    }
  }

  /** Why the disk takes no further upload; undefined when it does. */
  async shortage (): Promise<string | undefined> {
    return await this.#options.disk.check().then(() => undefined, messageOf)
  }

  /** Removes uploads that were idle for an hour. */
  removeIdle (): void {
    for (const [id, { requests, idleSince }] of this.#open) {
      if (requests === 0 && this.#clock() - idleSince >= IDLE_MS) this.#remove(id)
    }
  }

  #attendUpload (request: IncomingMessage, response: ServerResponse, id: string): void {
    const upload = this.#open.get(id)
    if (upload === undefined) return
    upload.requests++
    response.once('close', () => {
      upload.requests--
      upload.idleSince = this.#clock()
      const isDone = response.writableFinished && ((request.method === 'PUT' && response.statusCode === 201) || (request.method === 'DELETE' && response.statusCode === 204))
      if (isDone) this.#open.delete(id)
      // The store does not remove data that it failed to write.
      else if (response.statusCode >= 500) this.#remove(id)
    })
  }

  #attendBody (request: IncomingMessage, response: ServerResponse, asked: RegistryRequest, owner: string): void {
    const id = asked.upload
    const upload = id === undefined ? undefined : this.#open.get(id)
    const watch = this.#options.disk.watch()
    const stop = (status: number, code: string, message: string): void => {
      watch.stop()
      this.#options.log.warn({ owner, repository: asked.repository, bytes: upload?.bytes, reason: message }, 'an upload was ended')
      refuseMidway(request, response, { status, code, message })
      if (id !== undefined) this.#remove(id)
    }
    watch.signal.addEventListener('abort', () => { stop(507, 'INSUFFICIENT_STORAGE', messageOf(watch.signal.reason)) })
    // A full disk is noticed before the first byte of a fast client has been written.
    this.#options.disk.check().catch((error: unknown) => { if (!watch.signal.aborted && !response.writableEnded) stop(507, 'INSUFFICIENT_STORAGE', messageOf(error)) })
    const count = (piece: Buffer): void => {
      watch.count(piece.length)
      if (upload === undefined || watch.signal.aborted) return
      upload.bytes += piece.length
      if (this.#bytesOf(upload.owner) <= this.#options.maxBytes) return
      request.off('data', count)
      stop(403, 'DENIED', `the unfinished uploads of one key or build may have at most ${formatSize(this.#options.maxBytes)} together`)
    }
    request.on('data', count)
    response.once('close', () => { watch.stop() })
  }

  #bytesOf (owner: string): number {
    let bytes = 0
    for (const upload of this.#open.values()) if (upload.owner === owner) bytes += upload.bytes
    return bytes
  }

  /** Removes all uploads of an owner that will not continue them. */
  drop (owner: string): void {
    for (const [id, upload] of this.#open) if (upload.owner === owner) this.#remove(id)
  }

  #remove (id: string): void {
    const upload = this.#open.get(id)
    if (upload === undefined) return
    this.#open.delete(id)
    const { store, log } = this.#options
    for (const delayMs of REMOVAL_DELAYS_MS) {
      const timer = setTimeout(() => {
        store.dropUpload(upload.repository, id).catch((error: unknown) => { log.warn({ err: error, repository: upload.repository }, 'an unfinished upload could not be removed') })
      }, delayMs)
      timer.unref()
    }
  }
}

function messageOf (error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
