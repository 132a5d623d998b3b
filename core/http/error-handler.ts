// The one place that turns an error into an answer, and logs failures of the server.
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { DatabaseUnavailable, isDatabaseAway } from '../db/deadline.ts'
import { BerthError, type ErrorDetail } from '../errors/define.ts'
import { isDiskFull } from '../fs/disk-full.ts'
import { DiskFull } from './errors.ts'
import { reportUndocumented } from './route-errors.ts'
import { ValidationFailure } from './validation.ts'

const CODE_BY_STATUS: Readonly<Record<number, string>> = {
  404: 'not_found',
  405: 'method_not_allowed',
  408: 'request_timeout',
  413: 'payload_too_large',
  414: 'uri_too_long',
  415: 'unsupported_media_type',
  429: 'rate_limited',
  503: 'unavailable'
}

const RETRY_AFTER_SECONDS = '5'

export interface ErrorAnswer {
  readonly status: number
  readonly body: { readonly code: string, readonly message: string, readonly details?: readonly ErrorDetail[] }
}

/** Fastify's error handler. */
export function handleError (error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const { status, body } = answerTo(error, request)
  reportUndocumented(request, status, body.code)
  // 501 is not a failure: the server or its host cannot do this at all.
  if (status >= 500 && status !== 501) request.log.error({ err: error, method: request.method, path: pathOf(request) }, 'request failed')
  else request.log.debug({ err: error, status }, 'request refused')
  const retryAfterSeconds = error instanceof BerthError ? error.retryAfterSeconds : undefined
  // The official client repeats some of these unless it is told that repeating is useless.
  if (status === 501 || (status < 500 && status !== 429 && retryAfterSeconds === undefined)) reply.header('x-should-retry', 'false')
  // Not for every 503: some need an operator first.
  if (status === 503 && (body.code === 'unavailable' || body.code === DatabaseUnavailable.code)) reply.header('retry-after', RETRY_AFTER_SECONDS)
  else if (retryAfterSeconds !== undefined) reply.header('retry-after', String(retryAfterSeconds))
  if (status === 401) reply.header('www-authenticate', 'Bearer realm="berth"')
  // Set here, too: errors before a route is known pass no hook.
  void reply.code(status).header('x-request-id', request.id).send(body)
}

/** The answer to an error. For a fault of the server itself it has only the request id; the log has the cause. */
function answerTo (error: unknown, request: FastifyRequest): ErrorAnswer {
  if (error instanceof BerthError && error.kind !== 'internal') {
    return answer(error.statusCode, error.code, error.message, error.details)
  }
  if (error instanceof ValidationFailure) return answer(400, 'invalid_request', error.message, error.details)
  if (isDatabaseAway(error)) {
    const { code, message, statusCode } = DatabaseUnavailable()
    return answer(statusCode, code, message)
  }
  // Code that knows what the room was for has thrown a more exact error before.
  if (isDiskFull(error)) {
    const { code, message, statusCode } = DiskFull()
    return answer(statusCode, code, message)
  }
  const status = isHttpError(error) ? error.statusCode ?? 500 : 500
  if (isHttpError(error) && status >= 400 && status < 500) {
    return answer(status, CODE_BY_STATUS[status] ?? 'invalid_request', sentence(error, request))
  }
  if (isHttpError(error) && status === 503) return answer(503, 'unavailable', 'the server cannot take this request now; try again')
  return answer(500, 'internal_error', `the server failed; its log has the cause under the request id ${request.id}`)
}

function answer (status: number, code: string, message: string, details?: readonly ErrorDetail[]): ErrorAnswer {
  return { status, body: details === undefined ? { code, message } : { code, message, details } }
}

function isHttpError (error: unknown): error is FastifyError {
  return error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number'
}

// Fastify's own message, except where ours says more.
function sentence (error: FastifyError, request: FastifyRequest): string {
  switch (error.code) {
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE': return wrongType(request.routeOptions.config.accepts)
    case 'FST_ERR_CTP_BODY_TOO_LARGE': return 'the request body is larger than this server accepts'
    case 'FST_ERR_BAD_URL': return 'the path is not validly percent-encoded'
    case 'FST_ERR_CTP_INVALID_JSON_BODY': return 'the request body is not valid JSON'
    default: return error.message
  }
}

function wrongType (accepts: readonly string[] | undefined): string {
  if (accepts === undefined) return 'the request body must be JSON, with content-type application/json'
  return `the request body must come with the content-type ${accepts.join(', ').replace(/, (?!.*, )/, ' or ')}`
}

function pathOf (request: FastifyRequest): string {
  return request.url.split('?')[0] ?? ''
}
