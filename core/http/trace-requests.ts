// The trace of a request. It begins once the key is known, so that nobody without a key can start a trace, or continue one with a `traceparent`.
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import { whenClosed } from './client-gone.ts'
import type { RouteConfig } from './route-config.ts'
import { exitEnded, withSpan, type Span } from '../tracing/span.ts'
import type { SpanShape, Tracing } from '../tracing/tracing.ts'

declare module 'fastify' {
  interface FastifyRequest {
    span: Span | null
    /** the configuration of its route, if the trace is one span that is made at the end */
    oneSpanOf: RouteConfig | null
  }
}

const NO_ROUTE = 'unknown'

export interface RequestTraces {
  /** Calls `done` in the request's span, if it has one. */
  begin (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void
  /** The same once the body is read: a callback of the parser belongs to the connection, not to the request. */
  resume (request: FastifyRequest, done: HookHandlerDoneFunction): void
  /** Answers an error in the request's span, also where it has none until then: an error and its line in the log tell the trace. */
  answerError (request: FastifyRequest, reply: FastifyReply, answer: () => void): void
  end (request: FastifyRequest, reply: FastifyReply): void
}

export function traceRequests (tracing: Tracing): RequestTraces {
  const shapes = new Shapes()
  /** Gives the request its span, unless its trace is not taken. */
  const open = (request: FastifyRequest, reply: FastifyReply): Span | undefined => {
    const { method, id } = request
    const route = request.routeConfig?.url ?? NO_ROUTE
    const span = tracing.maker?.root(`${method} ${route}`, {
      kind: 'server',
      startMs: Date.now() - reply.elapsedTime,
      attributes: { 'http.request.method': method, 'http.route': route, 'berth.request_id': id },
      parent: parentOf(request)
    })
    if (span === undefined) return undefined
    request.span = span
    reply.header('x-trace-id', span.traceId)
    // Of a request whose client leaves, and of a WebSocket, no `onResponse` comes.
    whenClosed(request, reply, () => { close(span, reply) })
    return span
  }
  return {
    begin (request, reply, done) {
      if (tracing.maker === undefined || request.principal === null) return done()
      const { routeConfig: config } = request
      if (config?.oneSpan === true) request.oneSpanOf = config
      const span = request.oneSpanOf === null ? open(request, reply) : undefined
      if (span === undefined) done()
      else withSpan(span, done)
    },
    resume ({ span }, done) {
      if (span === null) done()
      else withSpan(span, done)
    },
    answerError (request, reply, answer) {
      if (request.oneSpanOf === null) return answer()
      request.oneSpanOf = null
      const span = open(request, reply)
      if (span === undefined) answer()
      else withSpan(span, answer)
    },
    end (request, reply) {
      const { span, oneSpanOf } = request
      if (oneSpanOf !== null) {
        const endMs = Date.now()
        tracing.maker?.single(shapes.of(oneSpanOf, request, reply), { startMs: endMs - reply.elapsedTime, endMs, parent: parentOf(request), value: request.id })
      } else if (span !== null) {
        close(span, reply)
      }
    }
  }
}

function close (span: Span, { raw, statusCode }: FastifyReply): void {
  if (span.ended) return
  // A client that left may have had none, and a WebSocket has none here.
  if (raw.headersSent) {
    span.set({ 'http.response.status_code': statusCode })
    if (statusCode >= 500) span.fail(undefined)
  }
  span.end()
  exitEnded()
}

function parentOf ({ raw: { headers: { traceparent } } }: FastifyRequest): string | undefined {
  return typeof traceparent === 'string' ? traceparent : undefined
}

/** What the spans of a route with one status have in common. */
class Shapes {
  readonly #known = new WeakMap<RouteConfig, Map<number, SpanShape>>()

  of (config: RouteConfig, { method }: FastifyRequest, { statusCode }: FastifyReply): SpanShape {
    let byStatus = this.#known.get(config)
    if (byStatus === undefined) this.#known.set(config, byStatus = new Map())
    let shape = byStatus.get(statusCode)
    if (shape === undefined) {
      const { url: route = NO_ROUTE } = config
      byStatus.set(statusCode, shape = { name: `${method} ${route}`, kind: 'server', attributes: { 'http.request.method': method, 'http.route': route, 'http.response.status_code': statusCode }, key: 'berth.request_id' })
    }
    return shape
  }
}
