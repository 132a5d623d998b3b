// What the egress plugin needs and offers, and its settings.
import { Type, type Static } from 'typebox'
import { Duration, Size } from '../../core/config/schema.ts'
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'
import { HTTP_PORT, HTTPS_PORT, MOST_FURTHER_PORTS } from '../../proxy/contract/ports.ts'
import { EgressUnavailable } from './errors.ts'

const closed = { additionalProperties: false, default: {} } as const
const Path = { pattern: '^/', rule: 'must be an absolute path' } as const
/** One that systemd runs has them in a file of its own, and says nothing of these. */
const MANAGED = '; only of a proxy that this server manages'
const Ranges = (description: string) => Type.Array(Type.String({
  pattern: '^[0-9a-fA-F.:]+(/[0-9]{1,3})?$',
  rule: 'must be an address or a network such as 192.168.0.0/16'
}), { default: [], description })

const MediatedPorts = (first: number, description: string) => Type.Array(Type.Integer({ minimum: 1, maximum: 65_535 }), { default: [first], minItems: 1, maxItems: 1 + MOST_FURTHER_PORTS, uniqueItems: true, description })

export const EgressConfig = Type.Object({
  proxy: Type.Object({
    manage: Type.Boolean({ default: true, description: 'Whether this server starts the proxy and looks after it; false when systemd does (berth-egress.service)' }),
    controlSocket: Type.Optional(Type.String({ ...Path, description: 'Unix socket of the proxy; without it <dataDir>/egress/proxy/control.sock. With systemd: /run/berth-egress/control.sock' })),
    user: Type.Optional(Type.String({
      pattern: '^([a-z_][a-z0-9_-]{0,31}|[1-9][0-9]{0,9})$',
      rule: 'must be the name or the number of a user other than root',
      description: 'User that a managed proxy runs as; without it berth-egress where there is such a user, else a number of its own between 1899000000 and 1899999999'
    })),
    workers: Type.Optional(Type.Integer({ minimum: 1, maximum: 256, description: 'Processes of a managed proxy that VMs are divided between; without it as many as processors, two at least' })),
    startTimeout: Duration('30s', `Time for a proxy to answer once it is started; one that takes longer is ended, and started again${MANAGED}`)
  }, closed),
  ports: Type.Object({
    http: MediatedPorts(HTTP_PORT, 'TCP ports where guests speak HTTP through the proxy; 80 is one of them'),
    https: MediatedPorts(HTTPS_PORT, 'TCP ports where they speak HTTPS through it; 443 is one of them. Each is known to the proxy as the port that the guest meant')
  }, closed),
  roots: Type.Array(Type.String(Path), { default: [], description: `PEM files of further authorities whose certificates origins may have${MANAGED}` }),
  allowPrivate: Ranges(`Private networks that guests may reach through the proxy${MANAGED}`),
  deny: Ranges('Networks that no guest may reach through the proxy; the host\'s own addresses, the guests\' network and plugins.networking.config.deniedNetworks are denied in any case'),
  passTraceparent: Type.Boolean({ default: false, description: 'While traces are taken (plugin tracing): whether a guest\'s own traceparent and tracestate go on to origins. The trace goes on with them in any case' }),
  limits: Type.Object({
    connections: Type.Integer({ default: 1024, minimum: 1, maximum: 1_000_000, description: `Most open connections of one VM to the proxy${MANAGED}` }),
    requests: Type.Integer({ default: 256, minimum: 1, maximum: 1_000_000, description: `Most requests of one VM that are under way at the same time${MANAGED}` })
  }, closed),
  audit: Type.Object({
    maxFileSize: Size('16MB', `Most that the log of requests keeps of one VM${MANAGED}`),
    files: Type.Integer({ default: 8, minimum: 2, maximum: 1000, description: `So many times that it keeps of all VMs together${MANAGED}` })
  }, closed)
}, { additionalProperties: false })

export type EgressConfig = Static<typeof EgressConfig>

export const manifest = {
  id: 'egress',
  provides: ['egress'],
  requires: ['log', 'database', 'commands', 'processes', 'metrics', 'server', 'secrets', 'tracing', 'plugins'],
  // Not required: where guests have no network, the server works on without a way out for them.
  optional: ['network'],
  errors: [EgressUnavailable],
  config: EgressConfig,
  migrations: new URL('migrations/', import.meta.url)
} as const satisfies PluginManifest<typeof EgressConfig>

export type Deps = DepsOf<typeof manifest>
