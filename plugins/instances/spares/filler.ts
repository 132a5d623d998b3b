// Makes spare VMs in the background, one at a time, while no VM is coming up that somebody waits for.
import type { JobQueue } from '../../../core/contracts/services.ts'
import { memoryOfHost } from '../../../core/process/host-memory.ts'
import type { BaseContext } from '../context.ts'
import { instancesFolder } from '../folder/paths.ts'
import { fitsOnDisk } from '../memory-image/memory-file.ts'
import { isShort } from '../reclaim/host-memory.ts'
import type { Spare, SpareSource } from './contract.ts'
import type { Demand } from './demand.ts'
import type { Idle } from './idle.ts'
import type { SparePool } from './pool.ts'

/** how long nothing is tried for a key after a failure */
const RETRY_AFTER_MS = 10 * 60_000

export interface FillerParts {
  readonly context: BaseContext
  readonly pool: SparePool
  readonly demand: Demand
  readonly idle: Idle
  readonly queue: JobQueue
}

export class SpareFiller {
  readonly #parts: FillerParts
  /** keys for which nothing is made, and until when */
  readonly #avoided = new Map<string, number>()
  #running: { readonly key: string, readonly done: Promise<void> } | undefined

  constructor (parts: FillerParts) {
    this.#parts = parts
  }

  /** Does work for this key in the background, unless it is doing so already. @param what is made, for the log */
  work (key: string, what: string, work: (signal: AbortSignal) => Promise<void>): void {
    const { context, queue } = this.#parts
    if ((this.#avoided.get(key) ?? 0) > performance.now()) return
    queue.push(key, async (signal) => {
      const done = this.#attempt(key, what, work, signal)
      this.#running = { key, done }
      await done
      this.#running = undefined
    }).catch((error: unknown) => { context.log.debug({ err: error }, 'no VM is made ahead: the server is stopping, or what it would be made of goes away') })
  }

  /** Does nothing for a key for a while. */
  avoid (key: string): void {
    this.#avoided.set(key, performance.now() + RETRY_AFTER_MS)
  }

  /** Ends the VM that is being made, if there is one. */
  async interrupt (): Promise<boolean> {
    const job = this.#running
    if (job === undefined || this.#parts.context.hidden.size === 0) return false
    this.#parts.queue.cancel(job.key)
    await job.done
    return true
  }

  /** Ends the work for this key; resolves once there is none. */
  async cancel (key: string): Promise<void> {
    this.#parts.queue.cancel(key)
    if (this.#running?.key === key) await this.#running.done
  }

  async close (): Promise<void> {
    await this.#parts.queue.close()
  }

  /** Makes the spare VMs that are missing. */
  async fill (source: SpareSource, signal: AbortSignal): Promise<void> {
    const { context, pool, idle } = this.#parts
    const { key } = source
    while (this.#wantsMore(key)) {
      // A boot takes a processor for a second, this only for a moment.
      await idle.wait(context.settings.templates.quietMs / 10, signal)
      if (!this.#wantsMore(key) || !await this.hasRoom(source)) return
      if (pool.size >= context.settings.templates.maxSpares) await pool.endOldest(key)
      const spare = await source.make(signal)
      if (spare === undefined) return
      await this.keep(spare, signal)
    }
  }

  /** Puts a spare VM into the pool, unless nobody wants it any more. */
  async keep (spare: Spare, signal: AbortSignal): Promise<void> {
    const { context: { settings: { templates } }, pool } = this.#parts
    if (signal.aborted || !this.#wantsMore(spare.key)) return await spare.end()
    if (pool.size >= templates.maxSpares) await pool.endOldest(spare.key)
    pool.put(spare)
  }

  /** Whether there is room: VMs made ahead must take nothing from VMs that run, neither the disk space that their memory may need, nor memory. */
  async hasRoom (source: Omit<SpareSource, 'make'>): Promise<boolean> {
    const { context } = this.#parts
    const { key, memoryBytes } = source
    const { totalBytes, availableBytes } = await memoryOfHost()
    const room = availableBytes > 2 * memoryBytes && !isShort({ totalBytes, availableBytes: availableBytes - memoryBytes }) && await fitsOnDisk(instancesFolder(context.dataDir), 2 * (memoryBytes + (await source.diskBytes?.() ?? 0)))
    if (!room) context.log.info({ key, memoryBytes }, 'no VM is made ahead: memory or disk space is short')
    return room
  }

  /** Never rejects. */
  async #attempt (key: string, what: string, work: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    try {
      await work(signal)
    } catch (error) {
      if (signal.aborted) return
      this.avoid(key)
      this.#parts.context.log.warn({ err: error, key }, `${what} could not be made; none is tried for a while`)
    }
  }

  /** After a burst as many as it would have taken. */
  #wantsMore (key: string): boolean {
    const { context: { settings: { templates } }, pool, demand } = this.#parts
    const wanted = templates.spares === 0 ? 0 : Math.max(templates.spares, demand.of(key))
    return pool.count(key) < Math.min(wanted, templates.maxSpares)
  }
}
