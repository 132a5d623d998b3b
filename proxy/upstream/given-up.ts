// Ends HTTP/2 sessions that have been given up below Node.
import { constants, type Http2Session } from 'node:http2'

/** A session is found within three of these. */
const CHECK_MS = 3_000

/**
 * Ends a session, and every stream on it, when nghttp2 has given it up. After a header block that cannot be decoded, or a frame of a wrong size, nghttp2 sends GOAWAY and from
 * then on neither reads nor writes. Node (20.20.2) is told nothing of it: the session stays open without an event, its streams wait, and its connection is not even
 * closed when the other side closes it.
 *
 * Such a session is recognized by a PING that stays in nghttp2's queue although the connection takes bytes. Only a session that has received something and is then silent is
 * asked, once, since some servers count a PING in vain as an attack (gRPC: `too_many_pings`). A PING without an answer alone proves nothing: the other side may be a VM in standby.
 */
export function endWhenGivenUp (session: Http2Session): void {
  let seenBytes = 0
  let question: 'none' | 'open' | 'answered' = 'none'
  const timer = setInterval(() => {
    if (session.destroyed) return
    const { bytesRead } = session.socket
    if (bytesRead !== seenBytes) {
      seenBytes = bytesRead
      question = 'none'
    } else if (question === 'none') {
      question = 'open'
      session.ping(() => {
        question = 'answered'
        if (!session.destroyed) seenBytes = session.socket.bytesRead
      })
    } else if (question === 'open' && isStuck(session)) {
      // What was queued in this turn of the event loop, by another timer say, is written in its next phase.
      setImmediate(() => { if (!session.destroyed && isStuck(session)) session.destroy(undefined, constants.NGHTTP2_PROTOCOL_ERROR) })
    }
  }, CHECK_MS)
  timer.unref()
  session.once('close', () => clearInterval(timer))
}

function isStuck (session: Http2Session): boolean {
  return (session.state.outboundQueueSize ?? 0) > 0 && queuedBytes(session.socket) === 0
}

/** Bytes that the connection has not taken yet. nghttp2 writes past the stream that Node shows, so that one's `writableLength` is always 0. */
function queuedBytes (socket: object): number | undefined {
  const handle: unknown = Reflect.get(socket, '_handle')
  const bytes: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'writeQueueSize') : undefined
  return typeof bytes === 'number' ? bytes : undefined
}
