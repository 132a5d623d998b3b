// The trace of a request. It begins once the key is known, so that nobody without a key can start a trace, or continue one with a `traceparent`.
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import { withSpan, type Span } from '../tracing/span.ts'
import type { Tracing } from '../tracing/tracing.ts'

declare module 'fastify' {
  interface FastifyRequest {
    span: Span | null
  }
}

const NO_ROUTE = 'unknown'

export interface RequestTraces {
  /** Calls `done` in the request's span, if it has one. */
  begin (request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void
  /** The same once the body is read: a callback of the parser belongs to the connection, not to the request. */
  resume (request: FastifyRequest, done: HookHandlerDoneFunction): void
  end (request: FastifyRequest, reply: FastifyReply): void
}

export function traceRequests (tracing: Tracing): RequestTraces {
  return {
    begin (request, reply, done) {
      const { maker } = tracing
      const span = maker === undefined || request.principal === null ? undefined : rootOf(maker, request, reply)
      if (span === undefined) return done()
      request.span = span
      reply.header('x-trace-id', span.traceId)
      withSpan(span, done)
    },
    resume ({ span }, done) {
      if (span === null) done()
      else withSpan(span, done)
    },
    end ({ span }, reply) {
      if (span === null) return
      span.set({ 'http.response.status_code': reply.statusCode })
      if (reply.statusCode >= 500) span.fail(undefined)
      span.end()
    }
  }
}

function rootOf (maker: NonNullable<Tracing['maker']>, request: FastifyRequest, reply: FastifyReply): Span | undefined {
  const { traceparent } = request.raw.headers
  const route = request.routeOptions.url ?? NO_ROUTE
  return maker.root(`${request.method} ${route}`, {
    kind: 'server',
    startMs: Date.now() - reply.elapsedTime,
    attributes: { 'http.request.method': request.method, 'http.route': route, 'berth.request_id': request.id },
    ...typeof traceparent === 'string' ? { parent: traceparent } : {}
  })
}
