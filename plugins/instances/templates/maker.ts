// Makes templates, and spare VMs of them, in the background.
import { removeTree } from '../../../core/fs/durable.ts'
import { unlessAborted } from '../../../core/jobs/unless-aborted.ts'
import type { Vm } from '../../../core/library/hypervisor.ts'
import type { BaseContext } from '../context.ts'
import { sharesMemory } from '../memory-image/sharing.ts'
import type { Spare } from '../spares/contract.ts'
import type { SpareFiller } from '../spares/filler.ts'
import type { Idle } from '../spares/idle.ts'
import { RehearsalFailed } from '../spares/rehearsal.ts'
import { buildTemplate } from './build.ts'
import type { Shape, VmShape } from './contract.ts'
import type { TemplatePaths } from './paths.ts'
import { hiddenSpec } from './shape.ts'
import { makeSpare, type TemplateSource } from './spare.ts'
import type { TemplateStore } from './store.ts'

export interface MakerParts {
  readonly context: BaseContext
  readonly paths: TemplatePaths
  readonly store: TemplateStore
  readonly filler: SpareFiller
  readonly idle: Idle
}

export class TemplateMaker {
  readonly #parts: MakerParts
  /** whether guests can rehearse, as far as is known */
  #rehearses = true
  /** keys of the templates whose spare VMs cannot become instances, as far as is known */
  readonly #spareless = new Set<string>()

  constructor (parts: MakerParts) {
    this.#parts = parts
  }

  /** Makes what is missing, in the background, so that the next VM of this shape comes up quickly. */
  want (shape: Shape, overlayBytes: number): void {
    const { filler, store } = this.#parts
    filler.work(shape.key, 'a template, or a spare VM of it,', async (signal) => {
      if (!await this.#isProven(shape, signal)) return
      if (!store.has(shape.key)) await this.#build(shape, overlayBytes, signal)
      if (!this.#spareless.has(shape.key)) await filler.fill({ ...shape, make: async () => await this.#makeOfStored(shape, overlayBytes, signal) }, signal)
    })
  }

  /** Tried once, on a VM of the server's own, when nothing else is going on. */
  async #isProven (shape: Shape, signal: AbortSignal): Promise<boolean> {
    const { context, store, filler, idle } = this.#parts
    if (!store.has(shape.key)) await idle.wait(context.settings.templates.quietMs, signal)
    const why = await unlessAborted(signal, context.hypervisors.get(shape.hypervisor)?.imaging?.refusal(shape) ?? Promise.resolve(undefined))
    // Found out here, so that no create has to wait for it.
    if (why === undefined) return await unlessAborted(signal, sharesMemory(context, hiddenSpec(shape, 0))).then(() => true)
    filler.avoid(shape.key)
    context.log.warn({ template: shape.key, why }, 'VMs cannot be saved and restored here, so they boot cold')
    return false
  }

  async #build (shape: Shape, overlayBytes: number, signal: AbortSignal): Promise<void> {
    const { context, paths, store, filler, idle } = this.#parts
    await idle.wait(context.settings.templates.quietMs, signal)
    if (!await filler.hasRoom(shape)) return
    const began = performance.now()
    const template = await buildTemplate(context, paths, shape, signal)
    if (template === undefined) return
    const files = paths.making(shape.key)
    let spare: Spare | undefined
    try {
      // No instance is to be the first to find out that a template does not work.
      spare = await this.#make({ template, files }, overlayBytes, signal)
      if (!await store.publish(template)) filler.avoid(shape.key)
    } catch (error) {
      await spare?.end()
      await removeTree(files.directory)
      throw error
    }
    const { vcpus, memoryBytes } = shape
    context.log.info({ template: shape.key, vcpus, memoryBytes, ms: Math.round(performance.now() - began) }, 'made a template')
    if (spare !== undefined) await filler.keep(spare, signal)
  }

  async #makeOfStored ({ key }: Shape, overlayBytes: number, signal: AbortSignal): Promise<Spare | undefined> {
    const use = this.#parts.store.use(key)
    if (use === undefined) return undefined
    try {
      return await this.#make(use, overlayBytes, signal)
    } finally {
      use.release()
    }
  }

  /** Undefined when no user is left for it, or when it could not become an instance. */
  async #make (source: TemplateSource, overlayBytes: number, signal: AbortSignal): Promise<Spare | undefined> {
    const spare = await this.#makeRehearsed(source, overlayBytes, signal)
    if (spare === undefined || canBecome(spare.vm, source.template)) return spare
    this.#spareless.add(source.template.key)
    await spare.end()
    return undefined
  }

  async #makeRehearsed (source: TemplateSource, overlayBytes: number, signal: AbortSignal): Promise<Spare | undefined> {
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
}

/** Whether a VM can be given the disks of an instance, and the limit of theirs. */
function canBecome (vm: Vm, { limitsDisks }: VmShape): boolean {
  return vm.replaceDisk !== undefined && (limitsDisks !== true || vm.limitDisks !== undefined)
}
