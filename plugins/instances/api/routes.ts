// The HTTP side of instances: parse, one call, status.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import { NotFound } from '../../../core/errors/common.ts'
import { clientGone } from '../../../core/http/client-gone.ts'
import { answerPage, matchesTags, paginate, wantedPage } from '../../../core/http/list.ts'
import { KeptList, sendKept } from '../../../core/http/kept-json.ts'
import { SSE_HEADERS } from '../../../core/http/sse.ts'
import { AutoStandbyStatus } from '../auto-standby/schemas.ts'
import { MemoryReclaim, ReclaimMemory } from '../reclaim/schemas.ts'
import { requireAgent } from '../guest/agent.ts'
import {
  AGENT_ERRORS, CHANGE_ERRORS, DiskFull, InstanceInStandby, InvalidSnapshotPolicy, InvalidWaitState, InvalidWaitTimeout, MEMORY_ERRORS, ReclaimUnsupported, SHAPE_ERRORS, START_ERRORS, STATE_ERRORS,
  VOLUME_ERRORS
} from '../errors.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import {
  AttachVolume, CreateInstance, DeleteQuery, EgressLog, EgressQuery, EgressTrial, EgressVerdict, ForkInstance, ForwardQuery, InstanceList, InstanceRef, InstanceStats, InstanceView, InstanceVolumeRef, ListInstancesQuery,
  LogsQuery, PathInfo, StandbyInstance, StartInstance, StatQuery, UpdateInstance, WaitAnswer, WaitQuery
} from './schemas.ts'
import { Capabilities } from './capabilities-schema.ts'
import { familyRoutes } from './family-routes.ts'
import type { Instances } from './service.ts'

const READ = { scope: 'instance:read' }
const WRITE = { scope: 'instance:write' }

function answer (reply: FastifyReply, instance: LiveInstance): FastifyReply {
  return sendKept(reply, instance.json)
}

/** @param withEgress whether there is a mediated way out, so that GET …/egress is served */
export function instanceRoutes (instances: Instances, withEgress: boolean): FastifyPluginAsyncTypebox {
  return async (app) => {
    // Streams and waits would hold the server open until they end by themselves.
    app.addHook('preClose', async () => { instances.interrupt() })
    await app.register(lifeRoutes(instances))
    await app.register(volumeRoutes(instances))
    await app.register(insightRoutes(instances))
    await app.register(familyRoutes(instances))
    await app.register(socketRoutes(instances))
    if (withEgress) await app.register(egressRoutes(instances))
  }
}

/** Routes that create, change, remove and show instances. */
function lifeRoutes (instances: Instances): FastifyPluginAsyncTypebox {
  const kept = new KeptList()
  return async (app) => {
    app.post('/instances', {
      config: { ...WRITE, idempotent: true, errors: [...CHANGE_ERRORS, ...SHAPE_ERRORS, ...START_ERRORS, NotFound], passesErrors: true },
      schema: { tags: ['instances'], body: CreateInstance, response: { 201: InstanceView } }
    }, async (request, reply) => answer(reply.code(201), await instances.create(request.body, request.principal?.id)))

    app.get('/instances', {
      config: { ...READ, oneSpan: true },
      schema: { tags: ['instances'], querystring: ListInstancesQuery, response: { 200: InstanceList } }
    }, async (request, reply) => {
      const { name, state, tags, ...page } = request.query
      const all = name === undefined && state === undefined && tags === undefined
        ? instances.all()
        : instances.all().filter((instance) => (name === undefined || instance.record.name === name) && (state === undefined || instance.state === state) && matchesTags(instance.record.spec.tags, tags))
      const found = paginate(all, wantedPage(page), ({ id }) => id, { created_at: ({ record }) => record.createdAt, name: ({ record }) => record.name })
      return kept.send(reply, answerPage(found, ({ id }) => id, request, reply).map(({ json }) => json))
    })

    app.get('/instances/:id', {
      config: { ...READ, oneSpan: true },
      schema: { tags: ['instances'], params: InstanceRef, response: { 200: InstanceView } }
    }, async (request, reply) => answer(reply, instances.find(request.params.id)))

    app.patch('/instances/:id', {
      config: { ...WRITE, errors: [...STATE_ERRORS, ...CHANGE_ERRORS], passesErrors: true },
      schema: {
        tags: ['instances'],
        description: 'Changes what is named, in any state of the instance. Once it has answered, no request carries an older value of a credential',
        params: InstanceRef,
        body: UpdateInstance,
        response: { 200: InstanceView }
      }
    }, async (request, reply) => answer(reply, await instances.update(request.params.id, request.body)))

    app.delete('/instances/:id', {
      config: { scope: 'instance:delete', errors: STATE_ERRORS, passesErrors: true },
      schema: { tags: ['instances'], params: InstanceRef, querystring: DeleteQuery, response: { 204: Type.Null() } }
    }, async (request, reply) => {
      await instances.delete(request.params.id, request.query.graceful_shutdown ?? true)
      return reply.code(204).send(null)
    })

    app.post('/instances/:id/start', {
      config: { ...WRITE, optionalBody: true, errors: [...STATE_ERRORS, ...START_ERRORS], passesErrors: true },
      schema: { tags: ['instances'], params: InstanceRef, body: StartInstance, response: { 200: InstanceView } }
    }, async (request, reply) => answer(reply, await instances.start(request.params.id, request.body, request.principal?.id)))

    app.post('/instances/:id/standby', {
      config: { ...WRITE, optionalBody: true, errors: [...STATE_ERRORS, ...MEMORY_ERRORS, InvalidSnapshotPolicy, DiskFull], passesErrors: true },
      schema: { tags: ['instances'], params: InstanceRef, body: StandbyInstance, response: { 200: InstanceView } }
    }, async (request, reply) => answer(reply, await instances.standby(request.params.id, request.body)))

    app.post('/instances/:id/restore', {
      config: { ...WRITE, errors: [...STATE_ERRORS, ...START_ERRORS, ...MEMORY_ERRORS], passesErrors: true },
      schema: { tags: ['instances'], params: InstanceRef, response: { 200: InstanceView } }
    }, async (request, reply) => answer(reply, await instances.restore(request.params.id, request.principal?.id)))

    app.post('/instances/:id/fork', {
      config: { ...WRITE, idempotent: true, errors: [...STATE_ERRORS, ...CHANGE_ERRORS, ...START_ERRORS, ...MEMORY_ERRORS], passesErrors: true },
      schema: { tags: ['instances'], params: InstanceRef, body: ForkInstance, response: { 201: InstanceView } }
    }, async (request, reply) => answer(reply.code(201), await instances.fork(request.params.id, request.body, request.principal?.id)))

    app.post('/instances/:id/stop', {
      config: { ...WRITE, errors: STATE_ERRORS, passesErrors: true },
      schema: { tags: ['instances'], params: InstanceRef, response: { 200: InstanceView } }
    }, async (request, reply) => answer(reply, await instances.stop(request.params.id)))
  }
}

/** Routes that attach and detach volumes. */
function volumeRoutes (instances: Instances): FastifyPluginAsyncTypebox {
  const config = { scope: 'volume:write' }
  return async (app) => {
    app.post('/instances/:id/volumes/:volumeId', {
      config: { ...config, idempotent: true, errors: [...STATE_ERRORS, ...VOLUME_ERRORS], passesErrors: true },
      schema: { tags: ['instances'], operationId: 'attachVolume', params: InstanceVolumeRef, body: AttachVolume, response: { 200: InstanceView } }
    }, async (request, reply) => answer(reply, await instances.attachVolume(request.params.id, request.params.volumeId, request.body)))

    app.delete('/instances/:id/volumes/:volumeId', {
      config: { ...config, errors: [...STATE_ERRORS, ...VOLUME_ERRORS], passesErrors: true },
      schema: { tags: ['instances'], operationId: 'detachVolume', params: InstanceVolumeRef, response: { 200: InstanceView } }
    }, async (request, reply) => answer(reply, await instances.detachVolume(request.params.id, request.params.volumeId)))
  }
}

/** Routes that look at an instance. */
function insightRoutes (instances: Instances): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get('/instances/:id/wait', {
      config: { ...READ, errors: [InvalidWaitState, InvalidWaitTimeout] },
      schema: { tags: ['instances'], operationId: 'waitForInstance', params: InstanceRef, querystring: WaitQuery, response: { 200: WaitAnswer } }
    }, async (request, reply) => await instances.wait(request.params.id, request.query, clientGone(request, reply)))

    app.get('/instances/:id/auto-standby/status', {
      config: READ,
      schema: { tags: ['instances'], operationId: 'getAutoStandbyStatus', description: 'Whether, when and why not the instance goes to standby by itself', params: InstanceRef, response: { 200: AutoStandbyStatus } }
    }, async (request) => await instances.autoStandby(request.params.id))

    app.post('/instances/:id/auto-standby/hold', {
      config: { ...WRITE, errors: [...STATE_ERRORS, InstanceInStandby] },
      schema: {
        tags: ['instances'],
        operationId: 'holdAutoStandby',
        description: 'Keeps the instance from going to standby by itself for as long as its idle timeout, counted from now, also when it was just about to go. Takes the place of an earlier hold. In standby it is too late (instance_in_standby)',
        params: InstanceRef,
        response: { 200: AutoStandbyStatus }
      }
    }, async (request) => await instances.holdAwake(request.params.id))

    app.get('/instances/:id/stats', {
      config: READ,
      schema: { tags: ['instances'], params: InstanceRef, response: { 200: InstanceStats } }
    }, async (request) => await instances.stats(request.params.id))

    app.get('/instances/:id/stat', {
      config: { ...READ, errors: [...STATE_ERRORS, ...AGENT_ERRORS], passesErrors: true },
      schema: { tags: ['instances'], params: InstanceRef, querystring: StatQuery, response: { 200: PathInfo } }
    }, async (request, reply) => await instances.stat(request.params.id, request.query.path, request.query.follow_links ?? false, clientGone(request, reply)))

    app.get('/instances/:id/logs', {
      config: { ...READ, produces: 'text/event-stream' },
      schema: { tags: ['instances'], params: InstanceRef, querystring: LogsQuery, description: 'Server-Sent Events; the data of each is one line as a JSON string' }
    }, async (request, reply) => reply.headers(SSE_HEADERS).send(instances.logs(request.params.id, request.query, clientGone(request, reply))))

    app.post('/resources/memory/reclaim', {
      config: { ...WRITE, errors: [ReclaimUnsupported] },
      schema: {
        operationId: 'reclaimMemory',
        summary: 'Take memory from guests that run, for the host',
        description: 'Guests that run do without some of their memory until `hold_until`, each by what it could give. Answers once they have followed, or after 10 s. A guest that runs short of memory takes its own back',
        body: ReclaimMemory,
        response: { 200: MemoryReclaim }
      }
    }, async (request) => await instances.reclaimMemory(request.body))

    app.get('/capabilities', {
      config: { scope: 'resource:read' },
      schema: { tags: ['server'], response: { 200: Capabilities } }
    }, async () => await instances.capabilities())
  }
}

/** The route that shows what the proxy has logged. */
function egressRoutes (instances: Instances): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get('/instances/:id/egress', {
      config: { ...READ, passesErrors: true },
      schema: {
        tags: ['instances'],
        description: 'The mediated way out of an instance, and what went through it, also what was refused',
        params: InstanceRef,
        querystring: EgressQuery,
        response: { 200: EgressLog }
      }
    }, async (request) => await instances.egressLog(request.params.id, request.query))

    app.post('/egress/try', {
      config: { ...READ, passesErrors: true },
      schema: {
        tags: ['instances'],
        operationId: 'tryEgress',
        description: 'What a policy would do with a request of a guest, before any instance has it. Nothing is changed; a proxy that systemd runs is asked what its own configuration allows and denies',
        body: EgressTrial,
        response: { 200: EgressVerdict }
      }
    }, async (request) => await instances.tryEgress(request.body))
  }
}

/** WebSockets into the guest. Whether the call is allowed is checked before the upgrade, so that a refusal is an ordinary answer. */
function socketRoutes (instances: Instances): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.get('/instances/:id/exec', {
      config: { ...WRITE, errors: [...STATE_ERRORS, ...AGENT_ERRORS] },
      websocket: true,
      schema: { tags: ['instances'], operationId: 'execInInstance', params: InstanceRef, description: 'WebSocket: runs a command in the guest' },
      preHandler: async (request) => { requireAgent('exec', instances.find(request.params.id)) }
    }, async (socket, request) => { await instances.exec(request.params.id, socket) })

    app.get('/instances/:id/cp', {
      config: { ...WRITE, errors: [...STATE_ERRORS, ...AGENT_ERRORS] },
      websocket: true,
      schema: { tags: ['instances'], operationId: 'copyWithInstance', params: InstanceRef, description: 'WebSocket: copies files into the guest or out of it' },
      preHandler: async (request) => { requireAgent('cp', instances.find(request.params.id)) }
    }, async (socket, request) => { await instances.cp(request.params.id, socket) })

    app.get('/instances/:id/forward', {
      config: { ...WRITE, errors: [...STATE_ERRORS, ...AGENT_ERRORS] },
      websocket: true,
      schema: { tags: ['instances'], operationId: 'forwardToInstance', params: InstanceRef, querystring: ForwardQuery, description: 'WebSocket: a TCP connection to a port of the guest' },
      preHandler: async (request) => { requireAgent('forward', instances.find(request.params.id)) }
    }, async (socket, request) => { await instances.forward(request.params.id, request.query.port, socket) })
  }
}
