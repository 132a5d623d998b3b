// What instances are made of, and what each of them costs.
import { NotFound } from '../../../core/errors/common.ts'
import { createLocks } from '../../../core/jobs/locks.ts'
import { pathsIn, type Context } from '../context.ts'
import { templateView, type TemplateView } from '../templates/schemas.ts'
import { footprintOf, type InstanceFootprint } from './footprint.ts'

export interface Family {
  /** what it costs the host, and what of that others share; one at a time, since each takes the kernel a while */
  footprint (ref: string): Promise<InstanceFootprint>
  /** the one that was used last comes first */
  templates (): TemplateView[]
  /** @throws not_found */
  removeTemplate (id: string): Promise<void>
}

export function createFamily (context: Context): Family {
  const { instances, templates } = context
  const turns = createLocks()
  const madeOf = (template: string): number => instances.all().filter(({ record: { spec: { source } } }) => source?.kind === 'template' && source.id === template).length
  return {
    async footprint (ref) {
      const instance = instances.find(ref)
      return await turns.hold('', async () => await footprintOf(instance.id, (instance.session?.vm ?? context.kept.find(instance.id)?.vm)?.handle, pathsIn(context, instance.id), context.commands))
    },
    templates: () => templates.list().map((facts) => templateView(facts, madeOf(facts.template.key))),
    async removeTemplate (id) {
      if (!await templates.remove(id)) throw NotFound('template', id)
    }
  }
}
