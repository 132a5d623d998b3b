// Ends HTTP/2 sessions that nghttp2 has given up without telling Node.
import { constants, type Http2Session } from 'node:http2'

/** A dead session is found within three intervals. */
const CHECK_MS = 3_000

/**
 * Ends a session, and every stream on it, when nghttp2 has given it up. After a header block that cannot be decoded, or a frame of a wrong size, nghttp2 sends GOAWAY and from
 * then on neither reads nor writes. Node (20.20.2) is not told: the session stays open without an event, its streams wait, and its connection is not even
 * closed when the other side closes it.
 *
 * Such a session is recognized by a PING that stays in nghttp2's queue although the connection takes bytes. A session is sent a PING only when it has received something and then falls silent,
 * and only once, since some servers count useless PINGs as an attack (gRPC: `too_many_pings`). A PING without an answer alone proves nothing: the other side may be a VM in standby.
 *
 * A session that has ended, in whatever way, waits in Node for the other side to take its last bytes and to close the connection: `end` ends that.
 */
export function endWhenGivenUp (session: Http2Session, end: () => void): void {
  let seenBytes = 0
  let question: 'none' | 'open' | 'answered' = 'none'
  const timer = setInterval(() => {
    if (session.destroyed) return end()
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
      // Frames that were queued in this turn of the event loop, for example by another timer, are written in its next phase.
      setImmediate(() => { if (!session.destroyed && isStuck(session)) session.destroy(undefined, constants.NGHTTP2_PROTOCOL_ERROR) })
    }
  }, CHECK_MS)
  timer.unref()
  session.once('close', () => clearInterval(timer))
}

function isStuck (session: Http2Session): boolean {
  return (session.state.outboundQueueSize ?? 0) > 0 && queuedBytes(session.socket) === 0
}

/** Bytes that the connection has not taken yet. nghttp2 writes past the stream that Node exposes, so that stream's `writableLength` is always 0. */
function queuedBytes (socket: object): number | undefined {
  const handle: unknown = Reflect.get(socket, '_handle')
  const bytes: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'writeQueueSize') : undefined
  return typeof bytes === 'number' ? bytes : undefined
}
