// What the webhooks plugin needs and offers, and its settings.
import { Type, type Static } from 'typebox'
import { Duration, LongDuration } from '../../core/config/schema.ts'
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'

export const WebhooksConfig = Type.Object({
  maxWebhooks: Type.Integer({ default: 50, minimum: 1, maximum: 1000, description: 'Webhooks that there may be; each sends one request at a time' }),
  allowPrivate: Type.Array(Type.String({ pattern: '^[0-9a-fA-F.:]+(/[0-9]{1,3})?$', rule: 'must be an address or a network such as 192.168.0.0/16' }), {
    default: [],
    description: 'Private networks that receivers may be in; one address alone is open even if it is the host\'s. Metadata services never'
  }),
  roots: Type.Array(Type.String({ pattern: '^/', rule: 'must be an absolute path' }), { default: [], description: 'PEM files of further authorities whose certificates receivers may have' }),
  timeout: Duration('10s', 'how long a receiver may take to answer'),
  retryFrom: Duration('1s', 'pause after the first failure; each further one doubles it'),
  retryAtMost: Duration('10m', 'longest pause between two attempts'),
  retryFor: LongDuration('24h', 'once the pauses come to this, the webhook is dead')
}, { additionalProperties: false })

export type WebhooksConfig = Static<typeof WebhooksConfig>

export const manifest = {
  id: 'webhooks',
  provides: [],
  requires: ['log', 'database', 'metrics', 'server', 'apiKeys', 'secrets', 'journal', 'eventFeed'],
  scopes: ['webhook:read', 'webhook:write'],
  tags: [{ name: 'webhooks', description: 'What changes, posted to other servers', place: 120 }],
  config: WebhooksConfig,
  migrations: new URL('migrations/', import.meta.url)
} as const satisfies PluginManifest<typeof WebhooksConfig>

export type Deps = DepsOf<typeof manifest>
