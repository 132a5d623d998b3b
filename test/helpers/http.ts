// A complete HTTP server with a few routes of the test's own, on an SQLite database in the test's folder.
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify'
import type { Knex } from 'knex'
import { join } from 'node:path'
import type { Registry } from 'prom-client'
import type { Test } from 'tap'
import { createAuthenticators } from '../../core/auth/authenticators.ts'
import { createApiKeys, type ManagedApiKeys } from '../../core/auth/keys.ts'
import { migratePlugin } from '../../core/db/migrate.ts'
import { openDatabase } from '../../core/db/open.ts'
import { createHttp } from '../../core/http/server.ts'
import { createLog } from '../../core/logging/log.ts'
import { createMetrics } from '../../core/metrics/registry.ts'
import type { Clocks } from '../../core/steady-clock.ts'
import { testFolder } from './folder.ts'

export interface TestHttp {
  readonly app: FastifyInstance
  readonly keys: ManagedApiKeys
  /** has full access */
  readonly key: string
  readonly database: Knex
  readonly metrics: Registry
  /** what was logged, as parsed lines */
  readonly logged: Array<Record<string, unknown>>
  /** A request with the full-access key. */
  send (options: InjectOptions): Promise<LightMyRequestResponse>
  /** Listens on a free port of loopback; returns the origin. */
  listen (): Promise<string>
}

export interface TestHttpOptions {
  /** absent: a fresh SQLite database */
  readonly databaseUrl?: string
  readonly drainTimeout?: string
  readonly bodyLimit?: string
  readonly logLevel?: string
  readonly origins?: readonly string[]
  readonly requestsPerMinute?: number
  /** absent: the host's */
  readonly clocks?: Clocks
  /** absent: the same for all */
  readonly hostId?: string
}

/** of servers that are given none */
export const HOST_ID = 'a'.repeat(24)

/** Makes a server whose routes `mount` adds, and ends it with the test. */
export async function startTestHttp (t: Test, mount: (app: FastifyInstance) => void, options: TestHttpOptions = {}): Promise<TestHttp> {
  const database = openDatabase(options.databaseUrl ?? `sqlite:${join(testFolder(t), 'http.db')}`)
  await migratePlugin(database, 'core', new URL('../../core/db/migrations/', import.meta.url))
  const logged: Array<Record<string, unknown>> = []
  const log = createLog({ level: options.logLevel ?? 'info', destination: { write: (line) => { logged.push(JSON.parse(line)) } } })
  const keys = createApiKeys({ database, log, scopes: ['*', 'instance:read', 'instance:write'] })
  const metrics = createMetrics()
  const { key } = await keys.create({ name: 'test', scopes: ['*'] })
  const config = { bodyLimit: options.bodyLimit ?? '64KB', drainTimeout: options.drainTimeout ?? '2s', cors: { origins: options.origins ?? [] }, rateLimit: { requests: options.requestsPerMinute ?? 0, per: '1m' } }
  const app = createHttp({ config, log, apiKeys: keys, authenticators: createAuthenticators(), metrics, database, hostId: options.hostId ?? HOST_ID, ...options.clocks === undefined ? {} : { clocks: options.clocks } })
  void app.register(async (child) => { mount(child) })
  t.teardown(async () => {
    await app.close()
    await keys.close()
    await database.destroy()
  })
  return {
    app,
    keys,
    key,
    database,
    metrics,
    logged,
    send: (request) => app.inject({ ...request, headers: { authorization: `Bearer ${key}`, ...request.headers } }),
    listen: () => app.listen({ host: '127.0.0.1', port: 0 })
  }
}
