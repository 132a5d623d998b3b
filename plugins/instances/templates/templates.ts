// Instant create: what operations ask for when a VM is to come up quickly. Operations never wait for a template to be made, and work without one.
import { removeTree } from '../../../core/fs/durable.ts'
import type { BaseContext } from '../context.ts'
import type { InstanceSpec } from '../model/record.ts'
import type { SpareTools } from '../spares/spares.ts'
import type { Shape, Templates } from './contract.ts'
import { TemplateMaker } from './maker.ts'
import { templatePaths, type TemplatePaths } from './paths.ts'
import { shapeOf } from './shape.ts'
import { createTemplateStore, type TemplateStore } from './store.ts'

export function createTemplates (context: BaseContext, { spares, filler, idle }: SpareTools): Templates {
  const { enabled, maxCount, maxBytes } = context.settings.templates
  const paths = templatePaths(context.dataDir)
  const store = createTemplateStore(paths, { maxCount, maxBytes }, context.log)
  const maker = new TemplateMaker({ context, paths, store, filler, idle })
  const findShape = createShapeFinder(context, store)
  return {
    open: async () => { await open(enabled, paths, store) },
    shapeOf: async (spec) => enabled ? await findShape(spec) : undefined,
    use: ({ key }) => store.use(key),
    async drop ({ key }) {
      filler.avoid(key)
      await store.remove(key)
    },
    list: () => store.facts().map((facts) => ({ ...facts, spares: spares.count(facts.template.key) })),
    async remove (key) {
      if (!store.has(key)) return false
      await store.remove(key)
      await spares.forget(key)
      return true
    },
    want (shape, overlayBytes, way) {
      // Without a template there could be no spare VM.
      if (way !== 'boot') spares.note(shape.key, way === 'spare')
      maker.want(shape, overlayBytes)
    },
    count: () => store.all().length
  }
}

async function open (enabled: boolean, paths: TemplatePaths, store: TemplateStore): Promise<void> {
  if (enabled) await store.open()
  // Switched off, so the templates are of no use, and large.
  else await removeTree(paths.folder)
}

/** When the shape cannot be found out, the cold boot meets the same failure and reports it. */
function createShapeFinder (context: BaseContext, store: TemplateStore): (spec: InstanceSpec) => Promise<Shape | undefined> {
  let swept: Promise<void> | undefined
  return async (spec) => {
    try {
      const shape = await shapeOf(context, spec)
      swept ??= removeStale(context, store).catch((error: unknown) => { context.log.warn({ err: error }, 'old templates could not be removed') })
      return shape
    } catch (error) {
      context.log.debug({ err: error }, 'no template can be looked for')
      return undefined
    }
  }
}

/** Removes the templates of another kernel, init or VMM. Not at the start of the server: this asks for the guest's system, which may have to be built first. */
async function removeStale (context: BaseContext, store: TemplateStore): Promise<void> {
  for (const template of store.all()) {
    // A template of a driver that is turned off may be used again later.
    if (!context.hypervisors.has(template.hypervisor)) continue
    const now = await shapeOf(context, template)
    if (now?.key === template.key) continue
    context.log.info({ template: template.key }, 'a template of another guest system or VMM is removed')
    await store.remove(template.key)
  }
}
