// Routes about what instances are made of, and what each of them costs.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { TemplateList, TemplatePath } from '../templates/schemas.ts'
import { InstanceFootprint } from './footprint.ts'
import { InstanceRef } from './schemas.ts'
import type { Instances } from './service.ts'

const READ = { scope: 'instance:read' }

export function familyRoutes (instances: Instances): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get('/templates', {
      config: READ,
      schema: { tags: ['instances'], description: 'Templates on this host, of which instances of any image come up without a boot; the one that was used last comes first', response: { 200: TemplateList } }
    }, async () => instances.templates())

    app.delete('/templates/:id', {
      config: { scope: 'instance:delete' },
      schema: {
        tags: ['instances'],
        description: 'Ends its spare VMs as well. Instances that were made of it stay as they are; the next one of its shape boots, and a template is made anew then',
        params: TemplatePath,
        response: { 204: Type.Null() }
      }
    }, async (request, reply) => {
      await instances.removeTemplate(request.params.id)
      return reply.code(204).send(null)
    })

    app.get('/instances/:id/footprint', {
      config: READ,
      schema: { tags: ['instances'], description: 'What the instance costs the host in memory and on the disk, and what of that others share. It is measured when it is asked for, one instance at a time', params: InstanceRef, response: { 200: InstanceFootprint } }
    }, async (request) => await instances.footprint(request.params.id))
  }
}
