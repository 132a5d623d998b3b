// The trace of a request. It begins once the key is known, so that nobody without a key can start a trace, or continue one with a `traceparent`.
import type { FastifyReply, FastifyRequest, HookHandlerDoneFunction } from 'fastify'
import { exitEnded, withSpan, type Span } from '../tracing/span.ts'
import type { Tracing } from '../tracing/tracing.ts'

declare module 'fastify' {
  interface FastifyRequest {
    span: Span | null
    /** what the request calls makes no spans, and runs in no context */
    hasOneSpan: boolean
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
      if (maker === undefined || request.principal === null) return done()
      const { url: route = NO_ROUTE, config: { oneSpan = false } } = request.routeOptions
      const span = rootOf(maker, request, reply, route)
      if (span === undefined) return done()
      request.span = span
      reply.header('x-trace-id', span.traceId)
      if (!oneSpan) return withSpan(span, done)
      request.hasOneSpan = true
      done()
    },
    resume ({ span, hasOneSpan }, done) {
      if (span === null || hasOneSpan) done()
      else withSpan(span, done)
    },
    end ({ span }, reply) {
      if (span === null) return
      span.set({ 'http.response.status_code': reply.statusCode })
      if (reply.statusCode >= 500) span.fail(undefined)
      span.end()
      exitEnded()
    }
  }
}

function rootOf (maker: NonNullable<Tracing['maker']>, request: FastifyRequest, reply: FastifyReply, route: string): Span | undefined {
  const { method, raw: { headers: { traceparent } } } = request
  return maker.root(`${method} ${route}`, {
    kind: 'server',
    startMs: Date.now() - reply.elapsedTime,
    attributes: { 'http.request.method': method, 'http.route': route, 'berth.request_id': request.id },
    ...typeof traceparent === 'string' ? { parent: traceparent } : {}
  })
}
