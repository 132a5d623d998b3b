// Builds the whole application from a configuration, without listening: the one place that knows every part of core.
import type { AwilixContainer } from 'awilix'
import type { FastifyInstance } from 'fastify'
import type { Knex } from 'knex'
import type { DestinationStream } from 'pino'
import { ensureAdminKey } from './auth/admin-key.ts'
import { createAuthenticators } from './auth/authenticators.ts'
import { createApiKeys, type ManagedApiKeys } from './auth/keys.ts'
import { keyRoutes } from './auth/routes.ts'
import { scopesOf } from './auth/scopes.ts'
import { processEnvironment, type Environment } from './config/environment.ts'
import { isMapping } from './config/json-schema.ts'
import { databaseUrl, sqliteFile } from './config/database-url.ts'
import { durationMs, sizeBytes } from './config/quantities.ts'
import { resolveConfig, type ResolvedConfig } from './config/resolve.ts'
import type { Config } from './config/schema.ts'
import { sourceOfValue } from './config/source.ts'
import { CORE_KEYS, createServiceContainer } from './container.ts'
import type { HostCommands, Logger } from './contracts/services.ts'
import { beginUpgrade, type Upgrade } from './data/copies/before-upgrade.ts'
import { closeCopies } from './data/copies/keep.ts'
import { CORE_MIGRATIONS, openCoreDatabase } from './data/database.ts'
import { prepareDataFolder, readHostId } from './data/folder.ts'
import { lockDataFolder } from './data/lock.ts'
import { openReserve } from './data/reserve.ts'
import { RunningHost } from './data/running-hosts.ts'
import { migratePlugin } from './db/migrate.ts'
import { createDiskSpace } from './fs/disk-space.ts'
import { listenAt } from './http/listen-problem.ts'
import { startMetricsListener } from './http/metrics-listener.ts'
import { documentTags } from './http/openapi/tags.ts'
import { createHttp } from './http/server.ts'
import { createEventBus } from './jobs/events.ts'
import { createJobs } from './jobs/queue.ts'
import { createListener, type Listener } from './listener.ts'
import { createLog } from './logging/log.ts'
import { createRecentLog } from './logging/recent.ts'
import { createMetrics } from './metrics/registry.ts'
import { builtInFolder } from './plugins/discover.ts'
import { Lifecycle, messageOf, PluginStartFailed, type PlannedPlugin } from './plugins/lifecycle.ts'
import type { Plugin, PluginManifest } from './plugins/manifest.ts'
import { PluginBoard, type PluginReports } from './plugins/reports.ts'
import { pluginRoutes } from './plugins/routes.ts'
import { endAllLeftovers } from './plugins/turned-off.ts'
import { createProcessRegister } from './process/register.ts'
import { createHostCommands } from './process/run.ts'
import { spawnerIdentity } from './process/spawner/spawner.ts'
import { openSecrets } from './secrets/secrets.ts'
import { createTracing } from './tracing/tracing.ts'
import { createUndo, type Undo } from './undo.ts'
import { API_VERSION, version } from './version.ts'

export interface App {
  readonly config: Config
  readonly log: Logger
  /** for `inject` in tests; ready once `start` has resolved */
  readonly http: FastifyInstance
  /** the state of each plugin */
  readonly plugins: PluginReports
  /**
   * Migrates and starts the plugins, mounts their routes and listens. Everything is undone when it rejects.
   * @param options `listen: false` leaves out the API's and the metrics' listener, which is enough for `inject`
   */
  start (options?: { listen?: boolean }): Promise<void>
  /** Drains requests, stops the plugins in reverse, and lets go of the data folder. Idempotent; never rejects. May come while `start` runs. */
  stop (): Promise<void>
  /** `http://host:port`, at which this host reaches the API. Throws when it does not listen. */
  address (): string
  /** `https://host:port`; undefined without `server.tls` */
  secureAddress (): string | undefined
}

export interface AppOptions {
  /** receives the log's lines; standard output when absent */
  readonly logStream?: DestinationStream
}

export interface BuildOptions extends AppOptions {
  /** overrides as of `ENVIRONMENT_OVERRIDES`; this process's own when absent */
  readonly environment?: Environment
  /** from which a plugin's relative `module` path is resolved; the working directory when absent */
  readonly folder?: string
  /** folder of the built-in plugins; an empty one gives a bare kernel */
  readonly builtIns?: URL
  /** plugins given as values, enabled like built-in ones and configured under their id */
  readonly plugins?: readonly Plugin[]
}

/**
 * Builds an application from a configuration as one writes it in YAML. Rejects with a `ConfigError` that names every
 * problem before anything is touched. Then the data folder is made and locked and the database opened, so `stop` must
 * be called even if `start` never was.
 * @example
 * const app = await buildApp({ server: { dataDir: t.testdir(), listen: '127.0.0.1:0' } })
 * t.teardown(() => app.stop())
 * await app.start()
 * await fetch(`${app.address()}/health`)
 */
export async function buildApp (config: unknown, options: BuildOptions = {}): Promise<App> {
  const { environment = processEnvironment(), folder = process.cwd(), builtIns = builtInFolder, plugins } = options
  return createApp(await resolveConfig(sourceOfValue(config, folder), { environment, builtIns, plugins }), options)
}

/** Builds an application from a configuration that has been resolved. */
export async function createApp (resolved: ResolvedConfig, { logStream }: AppOptions = {}): Promise<App> {
  const undo = createUndo()
  try {
    return new Application(resolved, await openParts(resolved, logStream, undo), undo)
  } catch (error) {
    await undo.run()
    throw error
  }
}

/** Used when the API has no plain listener: the server's own tools (skopeo, builds) reach its registry without TLS, with short-lived keys, from this host alone. */
const OWN_TOOLS = '127.0.0.1:0'

interface Parts {
  readonly log: Logger
  readonly database: Knex
  /** ends with the migrations of the plugins */
  readonly upgrade: Upgrade | undefined
  readonly apiKeys: ManagedApiKeys
  readonly metrics: ReturnType<typeof createMetrics>
  readonly http: FastifyInstance
  readonly listener: Listener
  readonly commands: HostCommands
  readonly container: AwilixContainer
  readonly board: PluginBoard
}

/** `undo` closes what each step opened, last opened first: when a step fails here, or when the application ends. */
async function openParts ({ config, plugins, disabled }: ResolvedConfig, logStream: DestinationStream | undefined, undo: Undo): Promise<Parts> {
  const { dataDir, stopInstancesOnExit, apiKey, minFree, minFreeInodes } = config.server
  const recentLog = createRecentLog(sizeBytes(config.log.recent))
  const log = createLog({ level: config.log.level, destination: logStream, recent: recentLog })
  await prepareDataFolder(dataDir)
  const lock = await lockDataFolder(dataDir)
  undo.add(() => lock.release())
  const hostId = await readHostId(dataDir)
  const secrets = await openSecrets(dataDir)
  const commands = createHostCommands({ packages: plugins.flatMap(({ manifest: { hostPackages = [] } }) => hostPackages) })
  const disk = createDiskSpace(dataDir, { bytes: sizeBytes(minFree), inodes: minFreeInodes })
  const reserve = await openReserve(config, { commands, log, disk })
  undo.add(() => reserve.leave())
  const url = databaseUrl(config.database.url, dataDir)
  let upgrade: Upgrade | undefined
  const database = await openCoreDatabase(config, async opened => {
    if (sqliteFile(config.database.url, dataDir) === undefined) {
      const running = new RunningHost(url, hostId, log)
      undo.add(() => running.end())
      await running.shown()
    }
    const sources = [CORE_MIGRATIONS, ...plugins.flatMap(({ manifest: { id, migrations: folder } }) => folder === undefined ? [] : [{ id, folder }])]
    upgrade = await beginUpgrade(opened, sources, { dataDir, url, commands, disk, most: config.database.keepCopies }, log)
    undo.add(async () => { await upgrade?.end() })
    if (upgrade?.copy !== undefined) log.info({ copy: upgrade.copy.number, bytes: upgrade.copy.bytes, reason: upgrade.copy.reason }, 'the database was copied before it is changed')
  })
  undo.add(() => database.destroy())
  undo.add(await reserve.hold(database))
  const apiKeys = createApiKeys({ database, log, scopes: scopesOf(plugins.map(({ manifest }) => manifest)) })
  undo.add(() => apiKeys.close())
  if (apiKey !== '') apiKeys.addProcessKey(apiKey)
  const jobs = createJobs()
  undo.add(() => jobs.close())
  const metrics = createMetrics()
  const tracing = createTracing()
  const board = new PluginBoard(plugins.map(plugin => plugin.manifest.id), disabled)
  const authenticators = createAuthenticators()
  const http = createHttp({ config: config.server, log, apiKeys, authenticators, metrics, database, hostId, tracing, tags: documentTags(plugins.map(({ manifest }) => manifest)) })
  const listener = createListener(http)
  const processes = createProcessRegister()
  processes.add(() => {
    const identity = spawnerIdentity()
    return identity === undefined ? [] : [{ name: 'starter of host commands', plugin: 'core', state: 'running', identity }]
  })
  const container = createServiceContainer({
    log, database, events: createEventBus(log), jobs, commands, disk, apiKeys, authenticators, metrics, secrets, tracing, plugins: board, recentLog, processes,
    server: { dataDir, hostId, version, apiVersion: API_VERSION, stopInstancesOnExit, localUrl: () => listener.url() }
  })
  undo.add(() => container.dispose())
  return { log, database, upgrade, apiKeys, metrics, http, listener, commands, container, board }
}

class Application implements App {
  readonly config: Config
  readonly log: Logger
  readonly http: FastifyInstance
  readonly plugins: PluginBoard
  readonly #parts: Parts
  readonly #undo: Undo
  readonly #plugins: readonly Plugin[]
  readonly #turnedOff: ResolvedConfig['turnedOff']
  readonly #lifecycle: Lifecycle
  #starting: Promise<void> | undefined
  #stopping: Promise<void> | undefined

  constructor ({ config, plugins, turnedOff }: ResolvedConfig, parts: Parts, undo: Undo) {
    this.config = config
    this.log = parts.log
    this.http = parts.http
    this.plugins = parts.board
    this.#parts = parts
    this.#undo = undo
    this.#plugins = plugins
    this.#turnedOff = turnedOff
    this.#lifecycle = new Lifecycle({
      plugins: plugins.map(plugin => planned(plugin, config)),
      container: parts.container,
      coreKeys: CORE_KEYS,
      board: parts.board,
      log: parts.log,
      startTimeoutMs: durationMs(config.server.startTimeout),
      stopTimeoutMs: durationMs(config.server.stopTimeout)
    })
  }

  start (options: { listen?: boolean } = {}): Promise<void> {
    this.#starting ??= this.#start(options.listen ?? true)
    return this.#starting
  }

  stop (): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  address (): string {
    return this.#parts.listener.url()
  }

  secureAddress (): string | undefined {
    return this.#parts.listener.secureUrl()
  }

  async #start (listen: boolean): Promise<void> {
    try {
      const { database, upgrade, apiKeys, container, log, commands } = this.#parts
      await this.#migrateAll(database)
      await upgrade?.end()
      await this.#announceAdminKey(apiKeys)
      await endAllLeftovers(this.#turnedOff, { dataDir: this.config.server.dataDir, commands, log })
      await this.#lifecycle.start()
      await this.http.register(pluginRoutes(container))
      await this.http.register(keyRoutes(apiKeys))
      await this.#lifecycle.mount(this.http)
      await this.http.ready()
      if (listen) await this.#listen()
    } catch (error) {
      // A stop that was called meanwhile waits for this very promise and closes everything itself.
      if (this.#stopping === undefined) {
        this.#stopping = this.#close()
        await this.#stopping
      }
      throw error
    }
  }

  async #migrateAll (database: Knex): Promise<void> {
    let isWhole = true
    for (const { manifest } of this.#plugins) {
      const failure = await migrate(database, manifest)
      if (failure === undefined) continue
      isWhole = false
      this.#lifecycle.leaveOut(manifest.id, failure)
    }
    // The copy of before stays that of an upgrade that is to go on: another one would hold a half-upgraded database.
    if (isWhole) await closeCopies(this.config.server.dataDir)
  }

  async #announceAdminKey (apiKeys: ManagedApiKeys): Promise<void> {
    const { path, created } = await ensureAdminKey(apiKeys, this.config.server.dataDir)
    if (created) this.log.info({ file: path }, 'admin key made')
  }

  async #listen (): Promise<void> {
    const { metrics: { enabled, listen }, listen: api, tls } = this.config.server
    const { listener: own, metrics } = this.#parts
    if (enabled) {
      const listener = await listenAt('server.metrics.listen', listen, async () => await startMetricsListener({ listen }, metrics, this.log))
      this.#undo.add(() => listener.close())
      this.log.info({ port: listener.port }, 'metrics served')
    }
    const plain = api === 'none' ? OWN_TOOLS : api
    await listenAt('server.listen', plain, async () => await own.listen(plain))
    const { listen: secure, certificate, key } = tls
    if (secure !== undefined && certificate !== undefined && key !== undefined) {
      await listenAt('server.tls.listen', secure, async () => await own.listenSecurely(secure, { files: { certificate, key }, log: this.log, metrics }))
    }
    this.log.info({ url: this.address(), ...secure === undefined ? {} : { tls: this.secureAddress() } }, 'listening')
  }

  async #stop (): Promise<void> {
    this.#lifecycle.abort(new Error('the server is stopping'))
    // A failure of `start` is caused by this stop, and the caller of `start` hears of it.
    await this.#starting?.catch(() => undefined)
    await this.#close()
  }

  async #close (): Promise<void> {
    await this.#parts.listener.close(durationMs(this.config.server.drainTimeout))
      .catch((error: unknown) => { this.log.error({ err: error }, 'the API did not close cleanly') })
    await this.#lifecycle.stop()
    for (const error of await this.#undo.run()) this.log.error({ err: error }, 'a part of the server did not close cleanly')
    this.log.info('stopped')
  }
}

function planned (plugin: Plugin, { plugins }: Config): PlannedPlugin {
  const entry = plugins[plugin.manifest.id]
  if (entry === undefined || !isMapping(entry.config)) throw new Error(`plugin ${plugin.manifest.id} has no checked configuration`)
  return { plugin, config: entry.config, onFailure: entry.onFailure }
}

/** @returns why it could not be done */
async function migrate (database: Knex, { id, migrations }: PluginManifest): Promise<PluginStartFailed | undefined> {
  if (migrations === undefined) return undefined
  try {
    await migratePlugin(database, id, migrations)
    return undefined
  } catch (error) {
    return new PluginStartFailed(`the tables of plugin ${id} could not be brought up to date: ${messageOf(error)}`, { cause: error })
  }
}
