// The shapes of requests and answers about webhooks.
import { Type, type Static } from 'typebox'
import { listQuery } from '../../core/http/list.ts'
import { nullable, oneOf, Tags, Timestamp } from '../../core/http/schemas.ts'

const closed = { additionalProperties: false } as const

const WebhookFilter = Type.Object({
  resources: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 32 }), { minItems: 1, maxItems: 20, description: 'Only these kinds of resources', examples: [['instance', 'image']] })),
  ids: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 1300 }), { minItems: 1, maxItems: 100, description: 'Only of resources with one of these ids or names, or whose id begins so' })),
  tags: Type.Optional(Tags)
}, { ...closed, description: 'Which events it gets, as with `GET /events`; all that its key may read when left out' })

const Url = Type.String({ minLength: 1, maxLength: 2000, description: 'Where events are posted to, by `https` or `http`', examples: ['https://ci.example.com/hooks/berth'] })
const Enabled = Type.Boolean({ description: 'Whether events are delivered; what changes meanwhile waits as long as `GET /events` knows it' })

export const WebhookCreate = Type.Object({
  url: Url,
  filter: Type.Optional(WebhookFilter),
  enabled: Type.Optional(Enabled)
}, { ...closed, $id: 'CreateWebhook' })
export type WebhookCreate = Static<typeof WebhookCreate>

export const WebhookPatch = Type.Object({
  url: Type.Optional(Url),
  filter: Type.Optional(WebhookFilter),
  enabled: Type.Optional(Enabled)
}, { ...closed, $id: 'UpdateWebhook' })
export type WebhookPatch = Static<typeof WebhookPatch>

const WEBHOOK_STATUSES = ['active', 'failing', 'dead'] as const

const fields = {
  id: Type.String(),
  url: Url,
  filter: WebhookFilter,
  enabled: Type.Boolean(),
  status: oneOf(WEBHOOK_STATUSES, { description: '`failing`: the last attempt failed, and is repeated; `dead`: it was given up, or its key has ended. A PATCH makes it active again, and it goes on where it was' }),
  key_id: Type.String({ description: 'The key that made or last changed it: it gets what that key may read, as long as that is valid' }),
  created_at: Timestamp,
  last_delivery: nullable(Type.Object({
    event_id: Type.String(),
    delivered_at: Timestamp
  }, { ...closed, description: 'The last event that the receiver has taken; up to a second old' })),
  failed_attempts: Type.Integer({ description: 'Failures since then' }),
  last_error: nullable(Type.Object({ message: Type.String(), failed_at: Timestamp }, { ...closed, description: 'Why the last attempt failed; null once one has succeeded' }))
}

export const WebhookView = Type.Object(fields, { ...closed, $id: 'Webhook' })
export type WebhookView = Static<typeof WebhookView>

export const CreatedWebhook = Type.Object({
  ...fields,
  secret: Type.String({ description: 'What its deliveries are signed with: `whsec_` and 32 bytes in base64. It is shown in this answer and never again' })
}, { ...closed, $id: 'CreatedWebhook' })

export const WebhookList = Type.Array(WebhookView)

export const WebhookListQuery = Type.Object({
  ...listQuery(['created_at', 'status'], 'created_at'),
  status: Type.Optional(oneOf(WEBHOOK_STATUSES, { description: 'Only webhooks with this status' }))
}, closed)
export type WebhookListQuery = Static<typeof WebhookListQuery>

export const WebhookPath = Type.Object({ id: Type.String({ minLength: 1, maxLength: 64 }) }, closed)
