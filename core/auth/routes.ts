// The HTTP side of keys: parse, one call, status.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type, type Static } from 'typebox'
import { readTime } from '../date-time.ts'
import { InvalidRequest } from '../errors/common.ts'
import { ANY_KEY } from '../http/authorize.ts'
import { answerPage, wantedPage } from '../http/list.ts'
import { checkMayRevoke, rightsFrom } from './grant.ts'
import type { ApiKeyRecord } from './key-repository.ts'
import type { ManagedApiKeys } from './keys.ts'
import { parseLifetime } from './lifetime.ts'
import { principalOf } from './principal-of.ts'
import { CreatedKey, KeyCreate, KeyList, KeyListQuery, KeyPath, KeyView, Whoami } from './schemas.ts'
import { keyStatus } from './status.ts'

const READ = { scope: 'key:read' }
const WRITE = { scope: 'key:write' }
const TAGS = ['keys']

export function keyRoutes (keys: ManagedApiKeys, clock: () => number = Date.now): FastifyPluginAsyncTypebox {
  return async (app) => {
    // No Idempotency-Key: the remembered answer would be the key in plain text.
    app.post('/keys', {
      config: WRITE,
      schema: { tags: TAGS, description: 'Makes a key. It can do no more than the key that asks for it', body: KeyCreate, response: { 201: CreatedKey } }
    }, async (request, reply) => {
      const { name, scopes, repositories } = request.body
      const maker = principalOf(request)
      const rights = rightsFrom(maker, { scopes, repositories, expiresAt: expiryOf(request.body, clock()) })
      const { key, record } = await keys.create({ name, ...rights, createdBy: maker.id })
      return reply.code(201).header('location', `/keys/${record.id}`).header('cache-control', 'no-store').send({ ...viewOf(record, clock()), key })
    })

    app.get('/keys', {
      config: READ,
      schema: { tags: TAGS, description: 'With those that have ended', querystring: KeyListQuery, response: { 200: KeyList } }
    }, async (request, reply) => {
      const { name, status, ...page } = request.query
      const found = await keys.page({ ...name === undefined ? {} : { name }, ...status === undefined ? {} : { status } }, wantedPage(page))
      return answerPage(found, ({ id }) => id, request, reply).map((record) => viewOf(record, clock()))
    })

    app.get('/keys/:id', {
      config: READ,
      schema: { tags: TAGS, params: KeyPath, response: { 200: KeyView } }
    }, async (request) => viewOf(await keys.get(request.params.id), clock()))

    app.delete('/keys/:id', {
      config: WRITE,
      schema: {
        tags: TAGS,
        operationId: 'revokeKey',
        description: 'Ends a key for good, with the streams that are open with it: at once in this server, within 5 seconds in others on the same database',
        params: KeyPath,
        response: { 204: Type.Null() }
      }
    }, async (request, reply) => {
      const record = await keys.get(request.params.id)
      checkMayRevoke(principalOf(request), record)
      await keys.revoke(record.id)
      return reply.code(204).send(null)
    })

    app.get('/whoami', {
      config: { scope: ANY_KEY },
      schema: { tags: TAGS, summary: 'Show the key of this request', response: { 200: Whoami } }
    }, async (request) => {
      const { id, name, scopes, repositories, expiresAt } = principalOf(request)
      return { id, name, scopes: [...scopes], repositories: repositories === undefined ? null : [...repositories], expires_at: time(expiresAt) }
    })
  }
}

function expiryOf ({ expires_at: at, expires_in: after }: Static<typeof KeyCreate>, now: number): number | undefined {
  if (after === undefined) return at === undefined ? undefined : readTime('expires_at', at)
  if (at !== undefined) throw InvalidRequest('expires_in: cannot be given together with expires_at')
  const ms = parseLifetime(after)
  if (ms === undefined) throw InvalidRequest('expires_in: must be a duration such as 30d, 12h or 1d12h')
  return now + ms
}

function viewOf (record: ApiKeyRecord, now: number): Static<typeof KeyView> {
  const { id, name, scopes, repositories, createdBy, createdAt, expiresAt, revokedAt, lastUsedAt } = record
  return {
    id,
    name,
    scopes: [...scopes],
    repositories: repositories === null ? null : [...repositories],
    status: keyStatus(record, now),
    created_by: createdBy,
    created_at: new Date(createdAt).toISOString(),
    expires_at: time(expiresAt),
    revoked_at: time(revokedAt),
    last_used_at: time(lastUsedAt)
  }
}

function time (ms: number | null | undefined): string | null {
  return ms === null || ms === undefined ? null : new Date(ms).toISOString()
}
