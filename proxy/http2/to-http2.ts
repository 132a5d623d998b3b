// A guest's HTTP/2 request to an origin that speaks HTTP/2: stream to stream, with trailers and resets both ways, so that gRPC goes through.
import { constants, type ClientHttp2Session } from 'node:http2'
import { passUp } from '../streams/pass-up.ts'
import type { StreamHead } from './head.ts'
import { requestLines, toObject } from './headers.ts'
import type { Reply } from './reply.ts'

/** Sends the request on. The policy is read in the turn in which the header is written. */
export function forwardToHttp2 (reply: Reply, head: StreamHead, session: ClientHttp2Session): void {
  const { stream: guest, exchange } = reply
  const rules = exchange.readPolicy()
  if (rules === undefined) return
  const endStream = guest.endAfterHeaders
  const outgoing = session.request({
    ...toObject(requestLines(head, rules)),
    ':method': head.method,
    ':path': head.path,
    ':scheme': 'https',
    ':authority': head.authority,
    ...(head.raw.includes('te') ? { te: 'trailers' } : {})
  }, { endStream, waitForTrailers: !endStream })
  exchange.headerWritten()
  reply.far = outgoing
  let trailers: readonly string[] = []
  outgoing.on('response', (headers, flags, raw: string[] = []) => {
    if (reply.ended) return outgoing.close(constants.NGHTTP2_CANCEL)
    const last = (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0
    reply.respond(headers[':status'] ?? 502, raw, last)
    if (!last) reply.send(outgoing, () => trailers)
  })
  outgoing.on('trailers', (_headers, _flags, raw: string[] = []) => { trailers = raw })
  // The reset that follows says what there is to say.
  outgoing.on('error', () => {})
  outgoing.on('close', () => {
    if (reply.ended || exchange.finished) return
    if (outgoing.rstCode !== constants.NGHTTP2_NO_ERROR && guest.headersSent) reply.reset(outgoing.rstCode)
    else if (!guest.headersSent) reply.abort('upstream_failed')
  })
  if (!endStream) sendBody(reply, outgoing)
}

function sendBody ({ stream: guest, exchange }: Reply, outgoing: ReturnType<ClientHttp2Session['request']>): void {
  let trailers: readonly string[] = []
  guest.on('trailers', (_headers, _flags, raw: string[] = []) => { trailers = raw })
  // None at all ends the stream with an empty frame.
  outgoing.on('wantTrailers', () => outgoing.sendTrailers(toObject(trailers)))
  passUp(exchange, guest, outgoing, () => outgoing.end())
}
