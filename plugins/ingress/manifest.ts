// What the ingress plugin needs and offers, and its settings.
import { Type, type Static } from 'typebox'
import { Duration, Size } from '../../core/config/schema.ts'
import type { PluginManifest } from '../../core/plugins/manifest.ts'
import type { Ingresses } from './service.ts'

declare module '../../core/plugins/manifest.ts' {
  interface Cradle {
    /** this plugin's own service */
    readonly ingresses: Ingresses
  }
}

const closed = { additionalProperties: false, default: {} } as const
const Ports = (description: string) => Type.Array(Type.Integer({ minimum: 1, maximum: 65_535 }), { default: [], maxItems: 16, uniqueItems: true, description })

export const IngressConfig = Type.Object({
  listen: Type.Object({
    address: Type.String({ default: '0.0.0.0', pattern: '^([0-9.]{7,15}|\\[[0-9A-Fa-f:.]{2,45}\\])$', rule: 'must be an address of this host, as 0.0.0.0 or [::1]', description: 'Address that requests come to' }),
    http: Ports('Ports for plain HTTP, as [80]; the plugin does nothing as long as it has no port at all'),
    https: Ports('Ports for TLS, as [443]')
  }, closed),
  limits: Type.Object({
    workers: Type.Integer({ default: 2, minimum: 1, maximum: 64, description: 'Processes of nginx that share the requests' }),
    connections: Type.Integer({ default: 4096, minimum: 16, maximum: 100_000, description: 'Most open connections of clients for each of those' }),
    connectionsPerClient: Type.Integer({ default: 1024, minimum: 1, maximum: 100_000, description: 'Most requests of one client address at the same time' }),
    idle: Duration('1h', 'how long a WebSocket or an answer may be silent')
  }, closed),
  log: Type.Object({
    maxFileSize: Size('4MB', 'Most that is kept of the requests to one instance; as much again of before')
  }, closed)
}, { additionalProperties: false })

export type IngressConfig = Static<typeof IngressConfig>

export const manifest = {
  id: 'ingress',
  provides: ['ingresses'],
  requires: ['log', 'database', 'commands', 'metrics', 'server', 'secrets', 'events'],
  // Not required: where there are no guests, or they have no network, the server works on without ways in to them.
  optional: ['journal', 'network', 'instanceCopies', 'leases', 'waking'],
  listens: ['instance.state', 'instance.deleted'],
  scopes: ['ingress:read', 'ingress:write', 'ingress:delete'],
  config: IngressConfig,
  migrations: new URL('migrations/', import.meta.url)
} as const satisfies PluginManifest<typeof IngressConfig>
