// Makes templates and spare VMs in the background, one at a time, while no VM is coming up that somebody waits for.
import { freemem } from 'node:os'
import type { JobQueue } from '../../../core/contracts/services.ts'
import { removeTree } from '../../../core/fs/durable.ts'
import { unlessAborted } from '../../../core/jobs/unless-aborted.ts'
import type { BaseContext } from '../context.ts'
import { fitsOnDisk } from '../memory-image/memory-file.ts'
import { sharesMemory } from '../memory-image/sharing.ts'
import { buildTemplate } from './build.ts'
import type { Demand } from './demand.ts'
import type { Idle } from './idle.ts'
import type { TemplatePaths } from './paths.ts'
import type { SparePool } from './pool.ts'
import type { Shape, Spare } from './contract.ts'
import { hiddenSpec } from './shape.ts'
import { makeSpare, RehearsalFailed, type SpareSource } from './spare.ts'
import type { TemplateStore } from './store.ts'

/** how long no template is tried for a shape after a failure */
const RETRY_AFTER_MS = 10 * 60_000

export interface MakerParts {
  readonly context: BaseContext
  readonly paths: TemplatePaths
  readonly store: TemplateStore
  readonly pool: SparePool
  readonly demand: Demand
  readonly idle: Idle
  readonly queue: JobQueue
}

export class TemplateMaker {
  readonly #parts: MakerParts
  /** keys of shapes for which nothing is made, and until when */
  readonly #avoided = new Map<string, number>()
  #running: { readonly key: string, readonly done: Promise<void> } | undefined
  /** whether guests can rehearse, as far as is known */
  #rehearses = true
  /** whether spare VMs can become instances, as far as is known */
  #replaces = true

  constructor (parts: MakerParts) {
    this.#parts = parts
  }

  /** Makes what is missing, in the background, so that the next VM of this shape comes up quickly. */
  want (shape: Shape, overlayBytes: number): void {
    const { context, queue } = this.#parts
    if ((this.#avoided.get(shape.key) ?? 0) > performance.now()) return
    queue.push(shape.key, async (signal) => {
      const done = this.#prepare(shape, overlayBytes, signal)
      this.#running = { key: shape.key, done }
      await done
      this.#running = undefined
    }).catch((error: unknown) => { context.log.debug({ err: error }, 'no template is made: the server is stopping') })
  }

  /** Makes no template of a shape for a while. */
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

  async close (): Promise<void> {
    await this.#parts.queue.close()
  }

  /** Never rejects. */
  async #prepare (shape: Shape, overlayBytes: number, signal: AbortSignal): Promise<void> {
    try {
      if (!await this.#isProven(shape, signal)) return
      if (!this.#parts.store.has(shape.key)) await this.#build(shape, overlayBytes, signal)
      await this.#fill(shape, overlayBytes, signal)
    } catch (error) {
      if (signal.aborted) return
      this.avoid(shape.key)
      this.#parts.context.log.warn({ err: error, template: shape.key }, 'a template, or a spare VM of it, could not be made; none is tried for a while')
    }
  }

  /** Tried once, on a VM of the server's own, when nothing else is going on. */
  async #isProven (shape: Shape, signal: AbortSignal): Promise<boolean> {
    const { context, store, idle } = this.#parts
    if (!store.has(shape.key)) await idle.wait(context.settings.templates.quietMs, signal)
    const why = await unlessAborted(signal, context.hypervisors.get(shape.hypervisor)?.imaging?.refusal(shape) ?? Promise.resolve(undefined))
    // Found out here, so that no create has to wait for it.
    if (why === undefined) return await unlessAborted(signal, sharesMemory(context, hiddenSpec(shape, 0))).then(() => true)
    this.avoid(shape.key)
    context.log.warn({ template: shape.key, why }, 'VMs cannot be saved and restored here, so they boot cold')
    return false
  }

  async #build (shape: Shape, overlayBytes: number, signal: AbortSignal): Promise<void> {
    const { context, paths, store, idle } = this.#parts
    await idle.wait(context.settings.templates.quietMs, signal)
    if (!await this.#hasRoom(shape)) return
    const began = performance.now()
    const template = await buildTemplate(context, paths, shape, signal)
    if (template === undefined) return
    const files = paths.making(shape.key)
    let spare: Spare | undefined
    try {
      // No instance is to be the first to find out that a template does not work.
      spare = await this.#makeSpare({ template, files }, overlayBytes, signal)
      if (!await store.publish(template)) this.avoid(shape.key)
    } catch (error) {
      await spare?.end()
      await removeTree(files.directory)
      throw error
    }
    const { vcpus, memoryBytes } = shape
    context.log.info({ template: shape.key, vcpus, memoryBytes, ms: Math.round(performance.now() - began) }, 'made a template')
    if (spare !== undefined) await this.#keep(spare)
  }

  /** Makes the spare VMs that are missing. */
  async #fill (shape: Shape, overlayBytes: number, signal: AbortSignal): Promise<void> {
    const { context, store, pool, idle } = this.#parts
    while (this.#wantsSpare(shape.key)) {
      // A boot takes a processor for a second, this only for a moment.
      await idle.wait(context.settings.templates.quietMs / 10, signal)
      const use = this.#wantsSpare(shape.key) && await this.#hasRoom(shape) ? store.use(shape.key) : undefined
      if (use === undefined) return
      try {
        if (pool.size >= context.settings.templates.maxSpares) await pool.endOldest(shape.key)
        const spare = await this.#makeSpare(use, overlayBytes, signal)
        if (spare === undefined) return
        await this.#keep(spare)
      } finally {
        use.release()
      }
    }
  }

  /** After a burst of creates as many as it would have taken. */
  #wantsSpare (key: string): boolean {
    const { context: { settings: { templates } }, pool, demand } = this.#parts
    const wanted = templates.spares === 0 ? 0 : Math.max(templates.spares, demand.of(key))
    return this.#replaces && pool.count(key) < Math.min(wanted, templates.maxSpares)
  }

  async #makeSpare (source: SpareSource, overlayBytes: number, signal: AbortSignal): Promise<Spare | undefined> {
    const { context, paths } = this.#parts
    try {
      return await makeSpare(context, paths, source, { overlayBytes, rehearse: this.#rehearses }, signal)
    } catch (error) {
      if (!(error instanceof RehearsalFailed)) throw error
      context.log.warn({ err: error }, 'spare VMs go without a rehearsal from now on, and start their programs more slowly')
      this.#rehearses = false
      return await makeSpare(context, paths, source, { overlayBytes, rehearse: false }, signal)
    }
  }

  async #keep (spare: Spare): Promise<void> {
    const { context: { settings: { templates } }, pool } = this.#parts
    this.#replaces &&= spare.vm.replaceDisk !== undefined
    if (!this.#wantsSpare(spare.key)) return await spare.end()
    if (pool.size >= templates.maxSpares) await pool.endOldest(spare.key)
    pool.put(spare)
  }

  /** Whether there is room: VMs made ahead must take nothing from VMs that run, neither the disk space that their memory may need, nor memory. */
  async #hasRoom ({ key, memoryBytes }: Shape): Promise<boolean> {
    const { context, paths } = this.#parts
    const room = freemem() > 2 * memoryBytes && await fitsOnDisk(paths.folder, 2 * memoryBytes)
    if (!room) context.log.info({ template: key, memoryBytes }, 'neither a template nor a spare VM is made: memory or disk space is short')
    return room
  }
}
