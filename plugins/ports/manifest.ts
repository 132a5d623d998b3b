// What the ports plugin needs and offers, and its settings.
import { Type, type Static } from 'typebox'
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'
import { Duration } from '../../core/config/schema.ts'
import { InvalidPorts, NoFreePort, NoWayToGuests, PortHeld, PortPublished, TooManyPorts } from './errors.ts'

export const PortsConfig = Type.Object({
  addresses: Type.Array(Type.String({ pattern: '^(host|[0-9.]+(/[0-9]+)?)$', rule: 'must be host, or an IPv4 address or network' }), {
    default: ['127.0.0.0/8', 'host'],
    description: 'Addresses that ports may be published at; host: all that the host has, and 0.0.0.0 for all together'
  }),
  firstPort: Type.Integer({ minimum: 1, maximum: 65_535, default: 1024, description: 'Lowest port of the host that may be asked for' }),
  lastPort: Type.Integer({ minimum: 1, maximum: 65_535, default: 65_535, description: 'Highest port of the host that may be asked for' }),
  firstChosen: Type.Integer({ minimum: 1, maximum: 65_535, default: 20_000, description: 'A port that nobody asks for by number is chosen from here' }),
  lastChosen: Type.Integer({ minimum: 1, maximum: 65_535, default: 29_999, description: 'and up to here' }),
  perInstance: Type.Integer({ minimum: 1, maximum: 1024, default: 32, description: 'Most published ports of one instance' }),
  perHost: Type.Integer({ minimum: 1, maximum: 65_535, default: 4096, description: 'Most published ports of all instances' }),
  connections: Type.Integer({ minimum: 1, maximum: 100_000, default: 1024, description: 'Most connections of one instance that the server relays at a time; also, most peers of a UDP port' }),
  connectionsPerClient: Type.Integer({ minimum: 1, maximum: 100_000, default: 512, description: 'Most of one client address, to all instances together' }),
  connectionsInAll: Type.Integer({ minimum: 1, maximum: 1_000_000, default: 8192, description: 'Most of all clients to all instances' }),
  heldDatagrams: Type.Integer({ minimum: 1, maximum: 10_000, default: 64, description: 'Most datagrams that are kept for one UDP port while its instance is woken' }),
  udpIdle: Duration('1m', 'How long a UDP peer is remembered from which nothing comes and to which nothing goes')
}, { additionalProperties: false })

export type PortsConfig = Static<typeof PortsConfig>

export const manifest = {
  id: 'ports',
  provides: [],
  requires: ['log', 'database', 'commands', 'server', 'events', 'metrics', 'plugins'],
  optional: ['network', 'journal'],
  fills: { slot: 'instanceParts', name: 'ports' },
  listens: ['instance.state'],
  scopes: ['instance:read', 'instance:write'],
  tags: [{ name: 'ports', description: 'Ports of the host that lead to instances', place: 20 }],
  errors: [PortHeld, PortPublished, NoFreePort, TooManyPorts, NoWayToGuests, InvalidPorts],
  config: PortsConfig,
  migrations: new URL('migrations/', import.meta.url)
} as const satisfies PluginManifest<typeof PortsConfig>

export type Deps = DepsOf<typeof manifest>
