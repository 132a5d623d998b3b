// The proxy's configuration: every key, its type, its default and what it is for. proxy/README.md has the same table.
import { Type, type Static } from 'typebox'

const closed = { additionalProperties: false }
const port = (value: number, description: string) => Type.Integer({ minimum: 1, maximum: 65_535, default: value, description })
const count = (value: number, description: string) => Type.Integer({ minimum: 1, maximum: 10_000_000, default: value, description })
const timeMs = (value: number, description: string) => Type.Integer({ minimum: 1, maximum: 2_147_483_647, default: value, description })
const texts = (description: string) => Type.Array(Type.String({ minLength: 1, maxLength: 4096 }), { default: [], description })
const place = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 4096, description }))

const Listen = Type.Object({
  http: place('address:port, or fd:NAME for a socket that systemd passes, that takes redirected plain HTTP'),
  https: place('the same for redirected TLS'),
  dns: place('address:port of the synthetic DNS; with systemd fd:NAME of the TCP socket, and NAME-udp for UDP'),
  control: Type.String({ minLength: 1, maxLength: 4096, description: 'path of the unix socket that the server speaks to, or fd:NAME' }),
  httpPort: port(80, 'port that guests mean when they reach the first listener'),
  httpsPort: port(443, 'port that guests mean when they reach the second'),
  guests: Type.Array(Type.Object({
    kind: Type.Union([Type.Literal('http'), Type.Literal('https')]),
    at: Type.String({ minLength: 1, maxLength: 4096 }),
    port: Type.Integer({ minimum: 1, maximum: 65_535 })
  }, closed), { default: [], maxItems: 64, description: 'listeners beside these two: what each takes, where it is, and the port that guests mean' })
}, closed)

const Resolver = Type.Object({
  servers: texts('DNS servers, address or address:port; empty: /etc/hosts, then those of /etc/resolv.conf'),
  timeoutMs: timeMs(5_000, 'time for an answer'),
  ipv6: Type.Boolean({ default: true, description: 'whether IPv6 addresses of hosts are used' })
}, closed)

const Dns = Type.Object({
  syntheticRange: Type.String({ default: '198.18.0.0/15', description: 'IPv4 range of the answers in mode all' }),
  ttlSeconds: Type.Integer({ minimum: 0, maximum: 86_400, default: 60, description: 'how long guests may keep them' })
}, closed)

const Limits = Type.Object({
  connections: count(1024, 'open connections of one VM'),
  requests: count(256, 'requests of one VM that are under way at the same time'),
  newNamesPerSecond: count(50, 'certificates that are made for one VM in a second'),
  dnsPerSecond: count(200, 'DNS queries of one VM in a second'),
  certificatesPerVm: count(256, 'certificates that are kept ready for one VM'),
  certificates: count(4096, 'certificates that are kept ready altogether'),
  originsPerVm: count(512, 'hosts of one VM whose connections are kept'),
  connectionsPerHost: count(64, 'connections of one VM to one host over HTTP/1.1'),
  headerBytes: Type.Integer({ minimum: 1024, maximum: 262_144, default: 32_768, description: 'largest header of a request or a response' }),
  headerCount: count(100, 'header lines of a request'),
  handshakeMs: timeMs(30_000, 'time for a TLS handshake'),
  headerMs: timeMs(10_000, 'time for the header of a request'),
  keepAliveMs: timeMs(75_000, 'time that an unused connection of a guest stays open'),
  connectMs: timeMs(10_000, 'time to connect to a host, TLS included, and for a connection to it to close'),
  idleMs: timeMs(900_000, 'time without a byte after which a request is given up'),
  tunnelIdleMs: timeMs(7_200_000, 'the same for WebSockets'),
  originIdleMs: timeMs(60_000, 'time after which unused connections to a host are closed'),
  bodyBytesPerSecond: count(64, 'slowest body of announced length'),
  bodyGraceMs: timeMs(30_000, 'time after which its rate counts'),
  drainMs: timeMs(30_000, 'time that running requests get after SIGTERM')
}, closed)

const Audit = Type.Object({
  file: Type.String({ minLength: 1, maxLength: 4096, description: 'place of the log of requests: with .d behind it, the folder that has a folder for each VM' }),
  maxFileBytes: Type.Integer({ minimum: 65_536, maximum: 1_073_741_824, default: 16_777_216, description: 'most bytes of one VM' }),
  files: Type.Integer({ minimum: 2, maximum: 1000, default: 8, description: 'all VMs together may have so many times that' })
}, closed)

export const ProxyConfig = Type.Object({
  listen: Listen,
  ca: Type.Object({ directory: Type.String({ minLength: 1, maxLength: 4096, description: 'folder of ca.key and ca.crt' }) }, closed),
  roots: texts('files with further root certificates that origins may have, PEM'),
  allowPrivate: texts('private ranges that guests may reach'),
  deny: texts('ranges that no guest may reach, such as the host\'s public addresses and the guests\' network'),
  resolver: Type.Object(Resolver.properties, { ...closed, default: {} }),
  dns: Type.Object(Dns.properties, { ...closed, default: {} }),
  limits: Type.Object(Limits.properties, { ...closed, default: {} }),
  workers: Type.Optional(Type.Integer({ minimum: 1, maximum: 256, description: 'processes that VMs are divided between; without it as many as processors, two at least' })),
  audit: Audit
}, closed)

export type ProxyConfig = Static<typeof ProxyConfig>
export type Limits = ProxyConfig['limits']
