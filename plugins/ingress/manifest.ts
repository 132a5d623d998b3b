// What the ingress plugin needs and offers, and its settings.
import { Type, type Static } from 'typebox'
import { Duration, Size } from '../../core/config/schema.ts'
import type { DepsOf, PluginManifest } from '../../core/plugins/manifest.ts'
import { oneOf } from '../../core/http/schemas.ts'

const closed = { additionalProperties: false, default: {} } as const
const Ports = (description: string) => Type.Array(Type.Integer({ minimum: 1, maximum: 65_535 }), { default: [], maxItems: 16, uniqueItems: true, description })

const Path = (description: string) => Type.Optional(Type.String({ pattern: '^/', rule: 'must be an absolute path', description }))

const Certificates = Type.Object({
  files: Type.Array(Type.Object({
    certificate: Type.String({ pattern: '^/', rule: 'must be an absolute path', description: 'PEM: the certificate, then those between it and a known authority' }),
    key: Type.String({ pattern: '^/', rule: 'must be an absolute path', description: 'PEM, without a passphrase' })
  }, { additionalProperties: false }), { default: [], maxItems: 256, description: 'Certificates of your own, as {certificate, key}; each serves the hosts that it names, before any other' }),
  acme: Type.Object({
    directory: Type.Optional(Type.String({ pattern: '^https://', rule: 'must begin with https://', description: 'Address of an ACME authority, as https://acme-v02.api.letsencrypt.org/directory; without it hosts get certificates of this server\'s own authority' })),
    email: Type.Optional(Type.String({ pattern: '^[^@\\s]{1,64}@[^@\\s]{1,190}$', rule: 'must be an email address', description: 'Whom the authority writes to' })),
    acceptTerms: Type.Boolean({ default: false, description: 'Whether you agree to the authority\'s terms; needed' }),
    hosts: Type.Array(Type.String({ pattern: '^(\\*\\.)?[a-z0-9_.-]{1,251}$', rule: 'must be a host in lower case, or *. and a domain' }), { default: [], maxItems: 256, description: 'Only these hosts, and for *.example.com all below it, get certificates from there; all when empty' }),
    challenge: oneOf(['http-01', 'dns-01'], { default: 'http-01', description: 'How a host is proven: by a request to its port 80, which must come to listen.http, or by a record in its zone, which wildcards need' }),
    dnsProvider: Type.Optional(Type.String({ pattern: '^[a-z0-9]{1,32}$', rule: 'must be a name that `lego dnshelp` lists', description: 'Who has the zone, for dns-01' })),
    dnsResolvers: Type.Array(Type.String({ pattern: '^[A-Za-z0-9.:\\[\\]-]{1,260}$', rule: 'must be host:port' }), { default: [], maxItems: 8, description: 'Who is asked whether the record is there; the system\'s when empty' }),
    waitForRecord: Type.Boolean({ default: true, description: 'Whether the zone\'s name servers must have the record before the authority is told' }),
    environment: Path('File with lines NAME=value that the DNS provider needs, for nobody else to read'),
    authority: Path('PEM file of who vouches for the directory, where it is no public authority'),
    timeout: Duration('10m', 'longest time for one certificate')
  }, closed)
}, closed)

export type AcmeConfig = Static<typeof Certificates>['acme']

export const IngressConfig = Type.Object({
  listen: Type.Object({
    address: Type.String({ default: '0.0.0.0', pattern: '^([0-9.]{7,15}|\\[[0-9A-Fa-f:.]{2,45}\\])$', rule: 'must be an address of this host, as 0.0.0.0 or [::1]', description: 'Address that requests come to' }),
    http: Ports('Ports for plain HTTP, as [80]; the plugin does nothing as long as it has no port at all'),
    https: Ports('Ports for TLS, as [443]')
  }, closed),
  certificates: Certificates,
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
  provides: [],
  requires: ['log', 'database', 'commands', 'metrics', 'server', 'secrets', 'events', 'jobs', 'processes'],
  // Not required: without guests, or without a network for them, the server works without ingresses.
  optional: ['journal', 'network', 'instanceCopies', 'leases', 'waking'],
  listens: ['instance.state', 'instance.deleted'],
  scopes: ['ingress:read', 'ingress:write', 'ingress:delete'],
  tags: [{ name: 'ingresses', description: 'Names and paths that lead to programs in instances', place: 90 }],
  hostPackages: [
    { name: 'nginx', commands: ['nginx'], oldest: '1.22.1', versionOption: '-v', need: 'tests', use: 'ingresses' },
    { name: 'lego', commands: ['lego'], need: 'tests', use: 'certificates by ACME' }
  ],
  config: IngressConfig,
  migrations: new URL('migrations/', import.meta.url)
} as const satisfies PluginManifest<typeof IngressConfig>

export type Deps = DepsOf<typeof manifest>
