// The HTTP side of snapshots and their schedules: parse, one call, status.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { InvalidState, NameConflict } from '../../core/errors/common.ts'
import { answerPage } from '../../core/http/list.ts'
import { copyRequestOf, forkRequestOf, listRequestOf } from './requests.ts'
import {
  CreateSnapshot, ForkSnapshot, Instance, InstancePath, InstanceSnapshotPath, ListSnapshotsQuery, RestoreSnapshot, ScheduleView, SetSchedule, SnapshotList,
  SnapshotPath, SnapshotView
} from './schemas.ts'
import type { Snapshots } from './service.ts'
import { scheduleView, snapshotView } from './view.ts'

const READ = { scope: 'snapshot:read' }
const WRITE = { scope: 'snapshot:write' }
const DELETE = { scope: 'snapshot:delete' }
const TAGS = ['snapshots']

export function snapshotRoutes (snapshots: Snapshots): FastifyPluginAsyncTypebox {
  return async (app) => {
    await app.register(objectRoutes(snapshots))
    await app.register(useRoutes(snapshots))
    await app.register(scheduleRoutes(snapshots))
  }
}

/** Routes that create, show and remove snapshots. */
function objectRoutes (snapshots: Snapshots): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post('/instances/:id/snapshots', {
      config: { ...WRITE, idempotent: true, errors: [NameConflict, InvalidState], passesErrors: true },
      schema: { tags: TAGS, params: InstancePath, body: CreateSnapshot, response: { 201: SnapshotView } }
    }, async (request, reply) => reply.code(201).send(snapshotView(await snapshots.create(request.params.id, request.body))))

    app.get('/snapshots', {
      config: READ,
      schema: { tags: TAGS, querystring: ListSnapshotsQuery, response: { 200: SnapshotList } }
    }, async (request, reply) => {
      return answerPage(await snapshots.list(listRequestOf(request.query)), ({ id }) => id, request, reply).map(snapshotView)
    })

    app.get('/snapshots/:snapshotId', {
      config: READ,
      schema: { tags: TAGS, params: SnapshotPath, response: { 200: SnapshotView } }
    }, async (request) => snapshotView(await snapshots.get(request.params.snapshotId)))

    app.delete('/snapshots/:snapshotId', {
      config: DELETE,
      schema: { tags: TAGS, params: SnapshotPath, response: { 204: Type.Null() } }
    }, async (request, reply) => {
      await snapshots.delete(request.params.snapshotId)
      return reply.code(204).send(null)
    })
  }
}

/** Routes that make instances of snapshots. */
function useRoutes (snapshots: Snapshots): FastifyPluginAsyncTypebox {
  const config = { scope: 'instance:write' }
  return async (app) => {
    app.post('/snapshots/:snapshotId/fork', {
      config: { ...config, idempotent: true, errors: [NameConflict, InvalidState], passesErrors: true },
      schema: { tags: TAGS, params: SnapshotPath, body: ForkSnapshot, response: { 201: Instance } }
    }, async (request, reply) => reply.code(201).send(await snapshots.fork(request.params.snapshotId, forkRequestOf(request.body, request.principal?.id))))

    app.post('/instances/:id/snapshots/:snapshotId/restore', {
      config: { ...config, optionalBody: true, errors: [InvalidState], passesErrors: true },
      schema: { tags: TAGS, params: InstanceSnapshotPath, body: RestoreSnapshot, response: { 200: Instance } }
    }, async (request) => await snapshots.restore(request.params.id, request.params.snapshotId, copyRequestOf(request.body)))
  }
}

function scheduleRoutes (snapshots: Snapshots): FastifyPluginAsyncTypebox {
  const url = '/instances/:id/snapshot-schedule'
  return async (app) => {
    app.get(url, {
      config: READ,
      schema: { tags: TAGS, params: InstancePath, response: { 200: ScheduleView } }
    }, async (request) => scheduleView(await snapshots.schedule(request.params.id)))

    app.put(url, {
      config: WRITE,
      schema: { tags: TAGS, params: InstancePath, body: SetSchedule, response: { 200: ScheduleView } }
    }, async (request) => scheduleView(await snapshots.setSchedule(request.params.id, request.body)))

    app.delete(url, {
      config: DELETE,
      schema: { tags: TAGS, params: InstancePath, response: { 204: Type.Null() } }
    }, async (request, reply) => {
      await snapshots.deleteSchedule(request.params.id)
      return reply.code(204).send(null)
    })
  }
}
