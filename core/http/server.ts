// Builds the HTTP server: what every route gets, in the order in which a request meets it.
import type { Server } from 'node:http'
import etag from '@fastify/etag'
import websocket from '@fastify/websocket'
import fastify, { LogController, type FastifyBaseLogger, type FastifyHttpOptions, type FastifyInstance, type preValidationHookHandler } from 'fastify'
import fastifyPlugin from 'fastify-plugin'
import type { Knex } from 'knex'
import type { Registry } from 'prom-client'
import { Type } from 'typebox'
import type { Authenticators } from '../auth/authenticators.ts'
import type { ApiKeys, Logger } from '../contracts/services.ts'
import { lazyChildren } from '../logging/lazy-log.ts'
import { parseDuration, parseSize } from '../units.ts'
import { authorization, authorizationAfterBody, refuseUpgrade, requireScope, requireUpgrade } from './authorize.ts'
import { coercionFor } from './coerce.ts'
import { answerBrokenRequest } from './broken-request.ts'
import { compressAnswers } from './compress.ts'
import { allowOrigins, isPreflightRoute } from './cors.ts'
import { contentHash } from './entity-tag.ts'
import { drainOnClose } from './drain.ts'
import { healthCheck, healthMetric } from './health.ts'
import { handleError } from './error-handler.ts'
import { rememberAnswers } from './idempotency.ts'
import { checkVersions } from './if-match.ts'
import { checkJsonSize } from './json-size.ts'
import { lingerAfterEarlyAnswers } from './linger.ts'
import { answerUnknownRoutes } from './not-found.ts'
import { registerOpenapi } from './openapi/register.ts'
import { documentTags, type DocumentTag } from './openapi/tags.ts'
import { assumeEmptyBody } from './optional-body.ts'
import { parseQuery, refuseLongQuery } from './query-string.ts'
import { limitRates } from './rate-limits.ts'
import { answerRepeats } from './repeated-requests.ts'
import { requestIds } from './request-id.ts'
import { requestMetrics } from './request-metrics.ts'
import { traceRequests, type RequestTraces } from './trace-requests.ts'
import type { Clocks } from '../steady-clock.ts'
import { createTracing, type Tracing } from '../tracing/tracing.ts'
import { API_VERSION } from '../version.ts'
import { buildSerializer } from './serializers.ts'
import { nameErrors, takesBody } from './route-errors.ts'
import { shareSchemas } from './shared-schemas.ts'
import { ApiRequest, asksForWebsocket } from './upgrade.ts'
import { describeFaults, validatorOptions } from './validation.ts'
import { buildValidator } from './validators.ts'
import { handleWebsocketError } from './websocket-errors.ts'

/** Longest path parameter: an image name with registry, path and digest is one. */
const MAX_PARAM_LENGTH = 2048
const MAX_WEBSOCKET_MESSAGE_BYTES = 2 ** 20

const Health = Type.Object({ status: Type.String() }, { additionalProperties: false })

export interface HttpOptions {
  /** `bodyLimit` and `drainTimeout` in the form of the configuration: `1MB`, `10s` */
  readonly config: {
    readonly bodyLimit: string
    readonly drainTimeout: string
    readonly cors: { readonly origins: readonly string[] }
    readonly rateLimit: { readonly requests: number, readonly per: string }
  }
  readonly log: Logger
  readonly apiKeys: ApiKeys
  readonly authenticators: Pick<Authenticators, 'principalOf'>
  readonly metrics: Registry
  readonly database: Knex
  readonly hostId: string
  /** absent: no traces are made */
  readonly tracing?: Tracing
  /** groups of the API's document; absent: core's own */
  readonly tags?: readonly DocumentTag[]
  /** the clocks for remembered answers; the host's, unless a test gives its own */
  readonly clocks?: Clocks
}

/** Makes the server with everything but the plugins' routes; it listens to nothing yet. */
export function createHttp (options: HttpOptions): FastifyInstance {
  const log = lazyChildren(options.log)
  const app: FastifyInstance = fastify(serverOptions(log, required(parseSize(options.config.bodyLimit), 'bodyLimit')))
  app.decorateRequest('principal', null)
  app.decorateRequest('routeConfig', null)
  app.decorateRequest('span', null)
  app.decorateRequest('oneSpanOf', null)
  const traces = traceRequests(options.tracing ?? createTracing())
  app.setErrorHandler((error, request, reply) => { traces.answerError(request, reply, () => { handleError(error, request, reply) }) })
  app.setSchemaErrorFormatter(describeFaults)
  acceptEmptyJson(app)
  drainOnClose(app, required(parseDuration(options.config.drainTimeout), 'drainTimeout'))
  lingerAfterEarlyAnswers(app)
  addRouteHooks(app, options, traces)
  void app.register(fastifyPlugin(async (root: FastifyInstance) => {
    const { cors: { origins }, rateLimit: { requests, per } } = options.config
    await allowOrigins(root, origins)
    addRequestHooks(root, options, traces)
    await limitRates(root, { requests, perMs: required(parseDuration(per), 'rateLimit.per') })
    await root.register(etag, { weak: true, hashFn: contentHash })
    compressAnswers(root)
  }))
  void app.register(websocket, { errorHandler: handleWebsocketError, options: { maxPayload: MAX_WEBSOCKET_MESSAGE_BYTES } })
  void app.register(fastifyPlugin(async (root: FastifyInstance) => {
    await registerOpenapi(root, API_VERSION, options.tags ?? documentTags([]))
    const check = healthCheck(options.database)
    healthMetric(options.metrics, check)
    root.get('/health', { config: { scope: null }, schema: { tags: ['server'], response: { 200: Health } } }, async () => {
      await check()
      return { status: 'ok' }
    })
  }))
  return app
}

function addRequestHooks (app: FastifyInstance, { apiKeys, authenticators, metrics, log }: HttpOptions, traces: RequestTraces): void {
  const authorize = authorization(apiKeys, authenticators)
  const count = requestMetrics(metrics)
  app.addHook('onRequest', function (request, reply, done) {
    reply.header('x-request-id', request.id)
    authorize.call(this, request, reply, (error) => {
      if (error === undefined) traces.begin(request, reply, done)
      else done(error)
    })
  })
  app.addHook('onResponse', (request, reply, done) => {
    count(request, reply)
    traces.end(request, reply)
    // A refused upgrade: Node has detached the connection and would neither read from it again nor close it.
    if (asksForWebsocket(request.raw)) request.raw.socket.end()
    if (log.isLevelEnabled('debug')) {
      request.log.debug({ method: request.method, path: request.url, status: reply.statusCode, ms: reply.elapsedTime }, 'request')
    }
    done()
  })
}

function addRouteHooks (app: FastifyInstance, { apiKeys, authenticators, database, hostId, clocks }: HttpOptions, traces: RequestTraces): void {
  const noteRoute = answerUnknownRoutes(app)
  const remember = rememberAnswers(app, { database, hostId }, clocks)
  const joinRepeats = answerRepeats(app)
  const checkVersion = checkVersions(app)
  const authorizeAgain = authorizationAfterBody(apiKeys, authenticators)
  const resumeTrace: preValidationHookHandler = (request, _reply, done) => { traces.resume(request, done) }
  app.addHook('onRoute', function (route) {
    requireScope(this, route)
    if (isPreflightRoute(route)) return
    route.onRequest = [route.websocket === true ? requireUpgrade : refuseUpgrade, refuseLongQuery, ...[route.onRequest ?? []].flat()]
    const coerce = coercionFor(route)
    const first = [...takesBody(route) ? [authorizeAgain, resumeTrace] : [], ...route.config?.optionalBody === true ? [assumeEmptyBody] : [], ...coerce === undefined ? [] : [coerce]]
    if (first.length > 0) route.preValidation = [...first, ...[route.preValidation ?? []].flat()]
    remember(route)
    joinRepeats(route)
    checkVersion(route)
    nameErrors(this, route)
    noteRoute(route)
    shareSchemas(app, this, route)
  })
}

// A POST without a body may still say that it is JSON: some clients set the header on every call.
function acceptEmptyJson (app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.removeContentTypeParser('application/json')
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '') done(null, undefined)
    else {
      void parse(request, typeof body === 'string' ? body : body.toString('utf8'), (error: Error | null, value?: unknown) => {
        try {
          if (error === null) checkJsonSize(value)
          done(error, value)
        } catch (fault) {
          done(fault instanceof Error ? fault : new Error(String(fault)))
        }
      })
    }
  })
}

function serverOptions (log: FastifyBaseLogger, bodyLimitBytes: number): FastifyHttpOptions<Server> {
  return {
    loggerInstance: log,
    http: { IncomingMessage: ApiRequest },
    // requests are logged here, at debug
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: bodyLimitBytes,
    genReqId: requestIds(),
    requestIdHeader: false,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH, querystringParser: parseQuery },
    ajv: { customOptions: { ...validatorOptions, keywords: [...validatorOptions.keywords] } },
    schemaController: { compilersFactory: { buildSerializer, buildValidator } },
    frameworkErrors: handleError,
    clientErrorHandler: answerBrokenRequest,
    // a request on a connection that was open before the stop is still answered, and then the connection ends
    return503OnClosing: false,
    // Each plugin's start has its own limit, and so has the mounting of its routes (core/plugins/lifecycle.ts). On a slow processor Fastify's 10 s are too few.
    pluginTimeout: 0
  }
}

function required (value: number | undefined, name: string): number {
  if (value === undefined) throw new Error(`server.${name} cannot be read`)
  return value
}
