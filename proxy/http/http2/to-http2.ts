// A guest's HTTP/2 request to an origin that speaks HTTP/2: stream to stream, with trailers and resets both ways, so that gRPC goes through.
import { constants, type ClientHttp2Stream, type OutgoingHttpHeaders } from 'node:http2'
import { requestTrailers } from '../../gate/request-fields.ts'
import { hasNoBody } from '../../gate/status.ts'
import type { OriginSession } from '../../upstream/http2-session.ts'
import type { StreamHead } from './head.ts'
import { requestLines, toObject } from './headers.ts'
import type { Reply } from './reply.ts'
import type { Upload } from './upload.ts'

export interface Http2Request {
  readonly reply: Reply
  readonly head: StreamHead
  readonly upload: Upload
  /** Is called instead of a refusal when the origin has not processed the request; undefined: it was sent again already. */
  readonly again: (() => void) | undefined
  /** Is called when the request was taken back before it left. */
  readonly renew: () => void
}

/** Sends the request on. The policy is read in the turn in which the header is written. */
export function forwardToHttp2 (request: Http2Request, session: OriginSession): void {
  const { reply, head } = request
  const { stream: guest, exchange } = reply
  const rules = exchange.readPolicy()
  if (rules === undefined) return
  const lines = requestLines(head, rules, exchange.trace)
  const headers = lines === undefined ? undefined : toObject(lines)
  if (headers === undefined) return reply.abort('bad_request')
  const endStream = guest.endAfterHeaders
  const outgoing = session.request({ ...headers, ...pseudo(head) }, { endStream, waitForTrailers: !endStream })
  exchange.headerWritten(session)
  let isTakenBack = false
  reply.far = {
    close: code => outgoing.close(code),
    renew () {
      if (guest.headersSent || !isUnsent(outgoing)) return
      isTakenBack = true
      // The header goes with its stream, wherever it waits.
      outgoing.close(constants.NGHTTP2_CANCEL)
    }
  }
  receive(request, outgoing, session, () => isTakenBack)
  if (!endStream) sendBody(request, outgoing)
}

function pseudo ({ method, path, host, raw }: StreamHead): OutgoingHttpHeaders {
  const takesTrailers = raw.some((text, index) => index % 2 === 0 && text === 'te')
  return { ':method': method, ':path': path, ':scheme': 'https', ':authority': host, ...(takesTrailers ? { te: 'trailers' } : {}) }
}

/** Whether its header still waits in nghttp2: for the origin to take one more request, or for earlier bytes to leave. nghttp2 opens a stream when it writes the header. */
function isUnsent (stream: ClientHttp2Stream): boolean {
  return !stream.closed && !stream.destroyed && (stream.pending || stream.state.state === constants.NGHTTP2_STREAM_STATE_IDLE)
}

function receive ({ reply, upload, again, renew }: Http2Request, outgoing: ClientHttp2Stream, session: OriginSession, isTakenBack: () => boolean): void {
  const { stream: guest, exchange } = reply
  let trailers: readonly string[] = []
  outgoing.on('response', exchange.listener((headers: { ':status'?: number, 'content-length'?: string }, flags: number, raw: string[] = []) => {
    if (reply.ended || guest.headersSent) return outgoing.close(constants.NGHTTP2_CANCEL)
    upload.forget()
    const status = headers[':status'] ?? 0
    const last = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0
    const empty = hasNoBody(exchange.subject.method, status)
    reply.respond(status, raw, last || empty)
    if (last) return
    // What an origin sends after an answer without a body is not read.
    if (empty) outgoing.close(constants.NGHTTP2_CANCEL)
    else reply.send(outgoing, () => isWhole(outgoing, exchange.bytesOut, headers['content-length']) ? trailers : undefined)
  }))
  outgoing.on('trailers', (_headers, _flags, raw: string[] = []) => { trailers = raw })
  /** The origin has answered, and does not read the rest of the request. */
  const conclude = (): void => {
    if (reply.ended || !guest.writableEnded || !upload.isUnfinished) return
    upload.hold()
    outgoing.destroy()
    reply.conclude()
  }
  // The reset that follows carries the code.
  outgoing.on('error', () => {})
  outgoing.on('close', exchange.listener(() => {
    if (reply.ended || exchange.finished) return
    if (isTakenBack()) {
      if (upload.isRepeatable) renew()
      else reply.abort('policy_changed')
      return
    }
    if (!guest.headersSent && again !== undefined && upload.isRepeatable && session.isUnprocessed(outgoing)) again()
    else if (!guest.headersSent) reply.abort('upstream_failed')
    else if (!guest.writableEnded) reply.reset(isReset(outgoing, session) ? outgoing.rstCode : constants.NGHTTP2_INTERNAL_ERROR)
    else conclude()
  }))
  // The origin has reset its stream: with NO_ERROR Node waits for the rest of the request, and there is no `close`.
  outgoing.on('aborted', exchange.listener(conclude))
}

/** Node ends a stream that was reset, or whose connection is gone, like any other; its `close`, which follows, has the guest's reset. A reset without an error shows by the length alone. */
function isWhole (outgoing: ClientHttp2Stream, received: number, told: string | undefined): boolean {
  return outgoing.rstCode === constants.NGHTTP2_NO_ERROR && (told === undefined || received === Number(told))
}

/** Whether the origin reset it. Node cancels the streams of a connection that is gone, and a client may take a cancelled answer for one that has ended. */
function isReset (outgoing: ClientHttp2Stream, session: OriginSession): boolean {
  return outgoing.rstCode !== constants.NGHTTP2_NO_ERROR && session.usable
}

function sendBody ({ reply, upload }: Http2Request, outgoing: ClientHttp2Stream): void {
  const { exchange } = reply
  // Empty trailers end the stream with an empty frame.
  outgoing.on('wantTrailers', exchange.listener(() => {
    const lines = requestTrailers(upload.trailers, exchange.rules)
    const headers = lines === undefined ? undefined : toObject(lines)
    if (headers === undefined) reply.abort('bad_request')
    else if (!outgoing.closed && !outgoing.destroyed) outgoing.sendTrailers(headers)
  }))
  upload.sendTo(outgoing)
}
