// The HTTP side of devices: parse, one call, status.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { answerPage } from '../../core/http/list.ts'
import type { Devices, WantedDevice } from './devices.ts'
import { AddressTaken, BindFailed, DeviceAttached, DeviceNotFound, InvalidName, InvalidPciAddress, NameTaken, NotAssignable } from './errors.ts'
import { AvailableList, CreateDevice, DeviceList, DeviceRef, DeviceView, ListDevicesQuery } from './schemas.ts'

const READ = { scope: 'device:read' }
const TAGS = ['devices']

export function deviceRoutes (devices: Devices): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get('/devices/available', {
      config: READ,
      schema: { tags: TAGS, operationId: 'listAvailableDevices', response: { 200: AvailableList } }
    }, async () => await devices.available())

    app.post('/devices', {
      config: { scope: 'device:write', idempotent: true, errors: [InvalidName, InvalidPciAddress, DeviceNotFound, NameTaken, AddressTaken, NotAssignable] },
      schema: { tags: TAGS, body: CreateDevice, response: { 201: DeviceView } }
    }, async (request, reply) => reply.code(201).send(await devices.register(wantedOf(request.body))))

    app.get('/devices', {
      config: READ,
      schema: { tags: TAGS, querystring: ListDevicesQuery, response: { 200: DeviceList } }
    }, async (request, reply) => {
      return [...answerPage(await devices.list(request.query), ({ id }) => id, request, reply)]
    })

    app.get('/devices/:id', {
      config: READ,
      schema: { tags: TAGS, params: DeviceRef, response: { 200: DeviceView } }
    }, async (request) => await devices.get(request.params.id))

    app.delete('/devices/:id', {
      config: { scope: 'device:delete', errors: [DeviceAttached, BindFailed] },
      schema: { tags: TAGS, params: DeviceRef, response: { 204: Type.Null() } }
    }, async (request, reply) => {
      await devices.unregister(request.params.id)
      return reply.code(204).send(null)
    })
  }
}

function wantedOf ({ pci_address: pciAddress, ...others }: CreateDevice): WantedDevice {
  return { ...others, pciAddress }
}
