// The HTTP side of devices: parse, one call, status.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { answerPage } from '../../core/http/list.ts'
import { errorResponses } from '../../core/http/schemas.ts'
import type { Devices } from './devices.ts'
import { AvailableList, CreateDevice, DeviceList, DeviceRef, DeviceView, ListDevicesQuery } from './schemas.ts'

const READ = { scope: 'device:read' }
const TAGS = ['devices']

export function deviceRoutes (devices: Devices): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get('/devices/available', {
      config: READ,
      schema: { tags: TAGS, operationId: 'listAvailableDevices', response: { 200: AvailableList, ...errorResponses() } }
    }, async () => await devices.available())

    app.post('/devices', {
      config: { scope: 'device:write', idempotent: true },
      schema: { tags: TAGS, body: CreateDevice, response: { 201: DeviceView, ...errorResponses(400, 404, 409) } }
    }, async (request, reply) => reply.code(201).send(await devices.register(request.body)))

    app.get('/devices', {
      config: READ,
      schema: { tags: TAGS, querystring: ListDevicesQuery, response: { 200: DeviceList, ...errorResponses(400) } }
    }, async (request, reply) => {
      return [...answerPage(await devices.list(request.query), ({ id }) => id, request, reply)]
    })

    app.get('/devices/:id', {
      config: READ,
      schema: { tags: TAGS, params: DeviceRef, response: { 200: DeviceView, ...errorResponses(404) } }
    }, async (request) => await devices.get(request.params.id))

    app.delete('/devices/:id', {
      config: { scope: 'device:delete' },
      schema: { tags: TAGS, params: DeviceRef, response: { 204: Type.Null(), ...errorResponses(404, 409) } }
    }, async (request, reply) => {
      await devices.unregister(request.params.id)
      return reply.code(204).send(null)
    })
  }
}
