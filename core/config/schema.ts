// The sections of the configuration that belong to core, with their defaults, which stand nowhere else.
import { Type, type Static, type TSchema } from 'typebox'
import { LONGEST_TIMER_MS } from '../jobs/longest-timer.ts'
import { parseDuration } from '../units.ts'

const DURATION_RULE = 'must be a duration such as 500ms, 30s or 1h30m'
const durationText = (value: string, description: string, rule: string) => Type.String({ default: value, pattern: '^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$', rule, description })

/** A duration as people write it, `30s` or `1h30m`, which a timer can hold; parse it with `durationMs`. */
export const Duration = (value: string, description: string) =>
  Type.Refine(durationText(value, description, `${DURATION_RULE}, of at most 596h`), (text) => (parseDuration(text) ?? Infinity) <= LONGEST_TIMER_MS)

/** A duration of any length, for what is compared with a clock: a timer that is set for it must be limited to `LONGEST_TIMER_MS`. */
export const LongDuration = (value: string, description: string) =>
  Type.Refine(durationText(value, description, DURATION_RULE), (text) => parseDuration(text) !== undefined)

/** A size as people write it, `512MB` or `2GB`, in binary units; parse it with `parseSize`. */
export const Size = (value: string, description: string) => Type.String({
  default: value,
  pattern: '^[0-9]+(\\.[0-9]+)?\\s?([KMGT]i?)?B?$',
  rule: 'must be a size such as 64KB, 512MB or 2GB',
  description
})

const PORT = '([0-9]|[1-9][0-9]{1,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])'
const ADDRESS = `(\\[[0-9A-Fa-f:.]+\\]|[A-Za-z0-9._-]+):${PORT}`
const ADDRESS_RULE = 'must be host:port, as in 127.0.0.1:8080 or [::1]:8080, with a port from 0 (any free one) to 65535'
const ListenAddress = (value: string, description: string) => Type.String({ default: value, pattern: `^${ADDRESS}$`, rule: ADDRESS_RULE, description })
const AbsolutePath = (description: string) => Type.Optional(Type.String({ pattern: '^/', rule: 'must be an absolute path', description }))

const closed = { additionalProperties: false } as const

const ServerConfigSchema = Type.Object({
  listen: Type.String({
    default: '127.0.0.1:8080',
    pattern: `^(none|${ADDRESS})$`,
    rule: `${ADDRESS_RULE}, or none`,
    description: 'host:port of the API without TLS; port 0 takes a free one, none is for TLS alone'
  }),
  tls: Type.Object({
    listen: Type.Optional(Type.String({ pattern: `^${ADDRESS}$`, rule: ADDRESS_RULE, description: 'host:port of the API over TLS (1.2 and later)' })),
    certificate: AbsolutePath('PEM file: the certificate of the server, then those between it and a known authority. Read again when it changes'),
    key: AbsolutePath('PEM file with its private key, which others must not be able to read')
  }, closed),
  dataDir: Type.String({ default: '/var/lib/berth', pattern: '^/[^:]*$', rule: 'must be an absolute path without a colon', description: 'folder of everything that Berth keeps' }),
  apiKey: Type.String({
    default: '',
    secret: true,
    pattern: '^(|[\\x21-\\x7e]{16,200})$',
    rule: 'must have 16 to 200 printable characters and no space, or be empty for none',
    description: 'admin key valid for this process only, never stored; meant for BERTH_API_KEY'
  }),
  stopInstancesOnExit: Type.Boolean({ default: false, description: 'whether VMs end with the server' }),
  drainTimeout: Duration('10s', 'how long running requests may take after a stop signal'),
  startTimeout: Duration('30s', 'how long one plugin may take to start, and to mount its routes'),
  stopTimeout: Duration('10s', 'how long one plugin may take to stop'),
  bodyLimit: Size('1MB', 'largest JSON request body'),
  minFree: Size('1GB', 'space that stays free on the disk of the data folder whatever comes in; of a small disk a twentieth is enough'),
  minFreeInodes: Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 10_000, description: 'inodes that stay free there; of a disk with few a tenth is enough' }),
  cors: Type.Object({
    origins: Type.Array(Type.String({ pattern: '^https?://[A-Za-z0-9.:[\\]-]{1,255}$', rule: 'must be an origin such as https://console.example.com' }), { default: [], description: 'Web pages whose scripts may call the API; none when empty' })
  }, closed),
  rateLimit: Type.Object({
    requests: Type.Integer({ minimum: 0, maximum: 1_000_000_000, default: 0, description: 'requests that one key may make in that time; 0 sets no limit' }),
    per: LongDuration('1m', 'that time')
  }, closed),
  metrics: Type.Object({
    enabled: Type.Boolean({ default: true, description: 'whether Prometheus text is served at /metrics on a listener of its own' }),
    listen: ListenAddress('127.0.0.1:9464', 'host:port of that listener, which asks for no key')
  }, closed)
}, closed)

const DatabaseConfigSchema = Type.Object({
  url: Type.String({
    default: 'sqlite:berth.db',
    pattern: '^(sqlite:.+|(mysql|mariadb)://.+)$',
    rule: 'must be sqlite:PATH or mysql://user:password@host:port/name',
    secret: 'url',
    description: 'sqlite:PATH (a relative path is inside dataDir) or mysql://user:password@host:port/name'
  }),
  keepCopies: Type.Integer({ minimum: 0, maximum: 100, default: 3, description: 'copies of the database that are kept from before upgrades changed it; 0 makes none, and an upgrade cannot be taken back then' })
}, closed)

const LogConfigSchema = Type.Object({
  level: Type.Enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], { default: 'info', description: 'least important level that is logged' }),
  recent: Size('4MB', 'memory for the newest lines of the log, which GET /host/log shows; 0B keeps none')
}, closed)

export type ServerConfig = Static<typeof ServerConfigSchema>
export type DatabaseConfig = Static<typeof DatabaseConfigSchema>
export type LogConfig = Static<typeof LogConfigSchema>

/** What the operator says about one plugin; `config` is checked against the plugin's own schema. */
export interface PluginEntry {
  readonly enabled: boolean
  readonly onFailure: 'abort' | 'continue'
  /** package name or path of a third party's plugin */
  readonly module?: string
  readonly config: unknown
}

export interface Config {
  readonly server: ServerConfig
  readonly database: DatabaseConfig
  readonly log: LogConfig
  readonly plugins: Readonly<Record<string, PluginEntry>>
}

const pluginEntrySchema = (config: TSchema) => Type.Object({
  enabled: Type.Boolean({ default: true, description: 'whether it is loaded at all' }),
  onFailure: Type.Enum(['abort', 'continue'], { default: 'abort', description: 'abort the start of the server, or continue without it' }),
  // A built-in plugin has no use for it, so the documented defaults, which list built-in plugins, leave it out.
  module: Type.Optional(Type.String({ minLength: 1, undocumented: true, description: 'a path or a package, for a plugin that is not built in' })),
  config
}, closed)

/**
 * The one closed schema of a whole configuration.
 * @param plugins the config schema of each enabled plugin; `undefined` for one that is not imported and so not checked
 */
export function composeSchema (plugins: Readonly<Record<string, TSchema | undefined>>) {
  const entries = Object.entries(plugins).map(([id, schema]): [string, ReturnType<typeof pluginEntrySchema>] => [id, pluginEntrySchema(schema ?? Type.Optional(Type.Unknown()))])
  return Type.Object({
    server: ServerConfigSchema,
    database: DatabaseConfigSchema,
    log: LogConfigSchema,
    plugins: Type.Object(Object.fromEntries(entries), closed)
  }, closed)
}
