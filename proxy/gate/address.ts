// Who is at the other end of a connection.
import type { Socket } from 'node:net'

/** The IPv4 address, also when the listener is one for both families. */
export function addressOf (socket: Pick<Socket, 'remoteAddress'>): string {
  const address = socket.remoteAddress ?? ''
  return address.startsWith('::ffff:') ? address.slice(7) : address
}
