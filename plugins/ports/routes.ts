// The HTTP side of published ports: parse, one call, status.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { answerPage, paginate, wantedPage } from '../../core/http/list.ts'
import { InvalidPorts, NoFreePort, NoWayToGuests, PortHeld, PortPublished, TooManyPorts } from './errors.ts'
import { ListPortsQuery, PortInstanceRef, PortList, PortRef, PortView, PublishPort } from './schemas.ts'
import type { Ports } from './service.ts'

const READ = { scope: 'instance:read' }
const WRITE = { scope: 'instance:write' }
const TAGS = ['ports']

export function portRoutes (ports: Ports): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get('/ports', {
      config: READ,
      schema: { tags: TAGS, operationId: 'listPorts', querystring: ListPortsQuery, response: { 200: PortList } }
    }, async (request, reply) => pageOf(ports.all(), request, reply))

    app.get('/instances/:id/ports', {
      config: READ,
      schema: { tags: TAGS, operationId: 'listInstancePorts', params: PortInstanceRef, querystring: ListPortsQuery, response: { 200: PortList } }
    }, async (request, reply) => pageOf(ports.ofInstance(request.params.id), request, reply))

    app.post('/instances/:id/ports', {
      config: { ...WRITE, idempotent: true, errors: [InvalidPorts, PortHeld, PortPublished, NoFreePort, TooManyPorts, NoWayToGuests], passesErrors: true },
      schema: {
        tags: TAGS,
        operationId: 'publishPort',
        description: 'Lets a port of the host lead to the instance, until it is taken away or the instance is deleted. A connection wakes an instance that sleeps',
        params: PortInstanceRef,
        body: PublishPort,
        response: { 201: PortView }
      }
    }, async (request, reply) => reply.code(201).send(await ports.publish(request.params.id, request.body)))

    app.delete('/instances/:id/ports/:portId', {
      config: WRITE,
      schema: { tags: TAGS, operationId: 'unpublishPort', params: PortRef, response: { 204: Type.Null() } }
    }, async (request, reply) => {
      await ports.unpublish(request.params.id, request.params.portId)
      return reply.code(204).send(null)
    })
  }
}

function pageOf (ports: readonly PortView[], request: FastifyRequest<{ Querystring: ListPortsQuery }>, reply: FastifyReply): PortView[] {
  const found = paginate(ports, wantedPage(request.query), ({ id }) => id, { created_at: ({ created_at: at }) => at, host_port: ({ host_port: port }) => port })
  return [...answerPage(found, ({ id }) => id, request, reply)]
}
