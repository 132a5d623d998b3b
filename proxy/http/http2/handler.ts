// Takes the HTTP/2 requests of one VM, admits each, and forwards it in its origin's protocol.
import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { GuestConnection } from '../../vms/connection.ts'
import { reasonOf, Refusal } from '../../contract/reasons.ts'
import type { OriginSession } from '../../upstream/http2-session.ts'
import type { SessionCall } from '../../upstream/http2-sessions.ts'
import type { Origin } from '../../upstream/origin.ts'
import { Exchange } from '../../vms/exchange.ts'
import type { Services } from '../../vms/services.ts'
import type { Vm } from '../../vms/vm.ts'
import { readStreamHead, type StreamHead } from './head.ts'
import { Reply } from './reply.ts'
import { forwardToHttp1 } from './to-http1.ts'
import { forwardToHttp2 } from './to-http2.ts'
import { Upload } from './upload.ts'

export interface Http2HandlerOptions {
  readonly vm: Vm
  readonly services: Services
}

interface ForwardedRequest {
  readonly reply: Reply
  readonly head: StreamHead
  readonly origin: Origin
  readonly upload: Upload
}

export type Http2Handler = (connection: GuestConnection, stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: readonly string[]) => void

/** Makes the listener for new streams. */
export function createHttp2Handler ({ vm, services }: Http2HandlerOptions): Http2Handler {
  /** @param isAgain whether the origin has refused to process it before */
  function forward (request: ForwardedRequest, { isAgain }: { readonly isAgain: boolean }): void {
    const { reply, origin } = request
    const call: SessionCall = {
      opened: session => reply.exchange.run(() => { if (!reply.ended) send(request, session, isAgain) }),
      failed (error) {
        if (error instanceof Refusal) reply.exchange.abort(reasonOf(error))
        else reply.exchange.fault(error)
      }
    }
    reply.far = { close: () => origin.http2.withdraw(call) }
    origin.http2.request(call)
  }

  function send (request: ForwardedRequest, session: OriginSession | undefined, isAgain: boolean): void {
    const { reply, head, origin, upload } = request
    const repeat = (isAgain: boolean): void => {
      upload.hold()
      forward(request, { isAgain })
    }
    if (upload.begun && (session === undefined || !upload.isRepeatable)) reply.abort('upstream_failed')
    else if (session === undefined) forwardToHttp1(reply, head, origin)
    else if (session.usable) forwardToHttp2({ reply, head, upload, again: isAgain ? undefined : () => repeat(true), renew: () => repeat(isAgain) }, session)
    // The session has ended meanwhile, because of another stream or by the origin's GOAWAY.
    else if (isAgain) reply.abort('upstream_failed')
    else forward(request, { isAgain: true })
  }

  function begin (connection: GuestConnection, stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: readonly string[]): void {
    const head = readStreamHead(headers, rawHeaders, services.limits)
    const origin = connection.admit(head, vm.exchanges.size + 1, services)
    const subject = { protocol: 'h2', host: connection.serverName ?? '', port: connection.port, secure: true, method: headers[':method'] ?? '', path: headers[':path'] ?? '' } as const
    const exchange = new Exchange(vm, subject, services)
    exchange.trace?.goOn(headers['traceparent'])
    exchange.run(() => {
      const reply = new Reply(stream, exchange, typeof origin === 'string' ? undefined : origin, services)
      if (typeof head === 'string') return reply.abort(head)
      if (typeof origin === 'string') return reply.abort(origin)
      exchange.expectedBytes = head.contentLength ?? 0
      forward({ reply, head, origin, upload: new Upload(stream, exchange) }, { isAgain: false })
    })
  }

  return (connection, stream, headers, rawHeaders) => vm.runFor(stream, () => begin(connection, stream, headers, rawHeaders))
}
