// The errors that a route may answer with: those that it declares, and those of every route of its kind. The document lists them by their codes, and tests report an answer whose code is not listed.
import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import { DatabaseUnavailable } from '../db/deadline.ts'
import type { DeclaredError } from '../errors/define.ts'
import { Ambiguous, InvalidRequest, NotFound } from '../errors/common.ts'
import { STATUS_BY_KIND } from '../errors/kinds.ts'
import { DiskFull, Forbidden, IdempotencyInProgress, IdempotencyKeyReused, RateLimited, Stopping, Unauthorized, UpgradeRequired } from './errors.ts'
import { ErrorBody } from './schemas.ts'
import { undocumentedErrors, type UndocumentedError } from './undocumented-errors.ts'

/** Status → codes, in alphabetical order. */
export type CodesByStatus = Readonly<Record<string, readonly string[]>>

/** Name of the decorator that tells routes which errors the plugins that their plugin calls can throw. */
export const CALLED_ERRORS = 'calledErrors'

const READING_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD'])

/** Adds the bodies of its errors to a route, and notes their codes. To be called for each route before it is compiled. */
export function nameErrors (instance: FastifyInstance, route: RouteOptions): void {
  const codes = codesOf(route, instance.hasDecorator(CALLED_ERRORS) ? instance.getDecorator(CALLED_ERRORS) : [])
  route.config = { ...route.config, errorCodes: codes }
  const own = route.schema?.response
  if (typeof own !== 'object' || own === null) return
  route.schema = { ...route.schema, response: { ...own, ...Object.fromEntries(Object.keys(codes).map((status) => [status, ErrorBody])) } }
}

/** Reports an answer whose code the route's document does not list. */
export function reportUndocumented (request: FastifyRequest, status: number, code: string): void {
  if (!undocumentedErrors.hasSubscribers) return
  const { url, config } = request.routeOptions
  // An error before a route is known belongs to no route. Whether 412 can occur depends on a GET of the same path, which is only known when all routes are.
  if (url === undefined || config.errorCodes === undefined || status === 412) return
  if (config.errorCodes[String(status)]?.includes(code) !== true) undocumentedErrors.publish({ method: request.method, url, status, code } satisfies UndocumentedError)
}

function codesOf (route: RouteOptions, called: readonly DeclaredError[]): CodesByStatus {
  const byStatus = new Map<number, Set<string>>()
  const add = (status: number, code: string): void => { byStatus.set(status, (byStatus.get(status) ?? new Set()).add(code)) }
  for (const { code, kind } of [...sharedErrors(route), ...route.config?.errors ?? [], ...route.config?.passesErrors === true ? called : []]) {
    if (kind !== 'internal') add(STATUS_BY_KIND[kind], code)
  }
  // Fastify's own refusals; see error-handler.ts
  if (takesBody(route)) {
    add(413, 'payload_too_large')
    add(415, 'unsupported_media_type')
  }
  add(500, 'internal_error')
  return Object.fromEntries([...byStatus].map(([status, codes]) => [String(status), [...codes].sort()]))
}

function sharedErrors (route: RouteOptions): DeclaredError[] {
  const { scope = null, idempotent = false } = route.config ?? {}
  return [
    InvalidRequest,
    Stopping,
    DatabaseUnavailable,
    ...scope === null ? [] : [Unauthorized, Forbidden, RateLimited],
    ...names(route) ? [NotFound, Ambiguous] : [],
    ...route.websocket === true ? [UpgradeRequired] : [],
    ...idempotent ? [IdempotencyKeyReused, IdempotencyInProgress] : [],
    ...takesBody(route) ? [DiskFull] : []
  ]
}

/** Whether it reads a body: any but a route that only reads. */
export function takesBody ({ method }: RouteOptions): boolean {
  return [method].flat().some((each) => !READING_METHODS.has(each))
}

/** Whether its path names a resource. */
function names ({ url }: RouteOptions): boolean {
  return /[:*]/.test(url)
}
