// The HTTP side of webhooks: parse, one call, status.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { principalOf } from '../../core/auth/principal-of.ts'
import { answerPage } from '../../core/http/list.ts'
import { AddressNotAllowed, TooManyWebhooks } from './errors.ts'
import { CreatedWebhook, WebhookCreate, WebhookList, WebhookListQuery, WebhookPatch, WebhookPath, WebhookView } from './schemas.ts'
import type { Webhooks } from './service.ts'
import { webhookView } from './view.ts'

const READ = { scope: 'webhook:read' }
const WRITE = { scope: 'webhook:write' }
const TAGS = ['webhooks']

export function webhookRoutes (webhooks: Webhooks): FastifyPluginAsyncTypebox {
  return async (app) => {
    // No Idempotency-Key: the remembered answer would be the secret in plain text.
    app.post('/webhooks', {
      config: { ...WRITE, errors: [AddressNotAllowed, TooManyWebhooks] },
      schema: {
        tags: TAGS,
        description: 'Posts each event that the key of this request may read to an address: from now on, in their order, at least once, with the headers `webhook-id`, `webhook-timestamp` and `webhook-signature` of Standard Webhooks',
        body: WebhookCreate,
        response: { 201: CreatedWebhook }
      }
    }, async (request, reply) => {
      const { record, secret } = await webhooks.create(request.body, principalOf(request))
      return reply.code(201).header('location', `/webhooks/${record.id}`).header('cache-control', 'no-store').send({ ...webhookView(record), secret })
    })

    app.get('/webhooks', {
      config: READ,
      schema: { tags: TAGS, querystring: WebhookListQuery, response: { 200: WebhookList } }
    }, async (request, reply) => answerPage(await webhooks.list(request.query), ({ id }) => id, request, reply).map(webhookView))

    app.get('/webhooks/:id', {
      config: READ,
      schema: { tags: TAGS, params: WebhookPath, response: { 200: WebhookView } }
    }, async (request) => webhookView(await webhooks.get(request.params.id)))

    app.patch('/webhooks/:id', {
      config: { ...WRITE, errors: [AddressNotAllowed] },
      schema: {
        tags: TAGS,
        description: 'Changes what is given, and starts a dead one anew: it goes on after the last event that was delivered. From then on it gets what the key of this request may read',
        params: WebhookPath,
        body: WebhookPatch,
        response: { 200: WebhookView }
      }
    }, async (request) => webhookView(await webhooks.update(request.params.id, request.body, principalOf(request))))

    app.delete('/webhooks/:id', {
      config: WRITE,
      schema: { tags: TAGS, description: 'Ends it; nothing is sent once this is answered', params: WebhookPath, response: { 204: Type.Null() } }
    }, async (request, reply) => {
      await webhooks.remove(request.params.id)
      return reply.code(204).send(null)
    })
  }
}
