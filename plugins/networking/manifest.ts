// What the networking plugin needs and offers, and its settings.
import { Type, type Static } from 'typebox'
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'
import { AddressesExhausted, NetworkUnusable, PortsExhausted } from './errors.ts'

const closed = { additionalProperties: false, default: {} } as const
const Rate = (description: string) => Type.Optional(Type.String({
  pattern: '^[0-9]+(\\.[0-9]+)? ?([KMGT]?bps|[KMGT]?B/s)$',
  rule: 'must be a rate such as 1Gbps or 100MB/s',
  description
}))
const Port = (port: number, description: string) => Type.Integer({ default: port, minimum: 1, maximum: 65_535, description })

export const NetworkingConfig = Type.Object({
  namespace: Type.Optional(Type.String({
    pattern: '^[a-z0-9][a-z0-9_-]{0,62}$',
    rule: 'must consist of a-z, 0-9, _ and -',
    description: 'Network namespace of the guests; without it, berth for the data folder /var/lib/berth and a name of its own for any other'
  })),
  cidr: Type.String({ default: '10.100.0.0/16', pattern: '^[0-9.]+/[0-9]+$', rule: 'must be an IPv4 network such as 10.100.0.0/16', description: 'Addresses of guests; the first is the gateway\'s' }),
  uplink: Type.String({
    default: 'auto',
    pattern: '^[A-Za-z0-9._-]{1,15}$',
    rule: 'must be auto, none or the name of an interface',
    description: 'Interface of the host through which guests reach the outside; auto: that of its default route, none: a closed network, for which the host is left as it is'
  }),
  deniedNetworks: Type.Array(Type.String({ pattern: '^[0-9.]+(/[0-9]+)?$', rule: 'must be an IPv4 address or network' }), {
    default: [],
    description: 'Where no guest may send directly, beside private networks; addresses of the host are denied in any case'
  }),
  allowPrivate: Type.Array(Type.String({ pattern: '^[0-9.]+(/[0-9]+)?$', rule: 'must be an IPv4 address or network' }), {
    default: [],
    description: 'Private networks that guests may reach directly; one address alone is open even if it is the host\'s, or in deniedNetworks. For what goes through the proxy: plugins.egress.config.allowPrivate'
  }),
  dns: Type.Object({
    servers: Type.Array(Type.String({ pattern: '^[0-9.]+(#[0-9]{1,5})?$', rule: 'must be an IPv4 address, or address#port' }), {
      default: [],
      description: 'Servers that answer the guests\' questions; none: those of the host'
    }),
    queriesPerSecond: Type.Integer({
      default: 50, minimum: 1, maximum: 100_000,
      description: 'DNS queries of one guest that are answered in a second, four times as many at once; the rest is dropped'
    })
  }, closed),
  proxy: Type.Object({
    httpPort: Port(18_080, 'Port of the egress proxy for what guests send to TCP 80'),
    httpsPort: Port(18_443, 'The same for TCP 443'),
    dnsPort: Port(18_053, 'Port of the egress proxy\'s DNS, for guests in mode all'),
    furtherPorts: Port(18_500, 'First of the ports of the egress proxy for what guests send to further ports of plugins.egress.config.ports; one each, at most 32')
  }, closed),
  bandwidth: Type.Object({
    download: Rate('What the host can receive for its guests; an instance without a limit of its own gets a share by its vCPUs. Without it, what the kernel tells of the uplink; where it tells nothing, no limit'),
    upload: Rate('The same for what guests send')
  }, closed),
  connectionsPerGuest: Type.Integer({ default: 16_384, minimum: 16, maximum: 1_000_000, description: 'Most connections of one guest at a time: the host\'s table of them is shared by all' })
}, { additionalProperties: false })

export type NetworkingConfig = Static<typeof NetworkingConfig>

export const manifest = {
  id: 'networking',
  provides: ['network'],
  requires: ['log', 'database', 'events', 'commands', 'processes', 'server'],
  listens: ['instance.deleted'],
  errors: [NetworkUnusable, AddressesExhausted, PortsExhausted],
  hostPackages: [
    { name: 'conntrack', commands: ['conntrack'], oldest: '1.4.7', need: 'network', use: 'networks' },
    { name: 'dnsmasq-base', commands: ['dnsmasq'], oldest: '2.90', need: 'network', use: 'names in networks' },
    { name: 'nftables', commands: ['nft'], oldest: '1.0.6', need: 'network', use: 'networks' },
    { name: 'procps', commands: ['sysctl'], need: 'network', use: 'networks' }
  ],
  config: NetworkingConfig,
  migrations: new URL('migrations/', import.meta.url)
} as const satisfies PluginManifest<typeof NetworkingConfig>

export type Deps = DepsOf<typeof manifest>
