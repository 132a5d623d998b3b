// The address of the other end of a connection.
import type { Socket } from 'node:net'

/** The peer's IPv4 address, also when the listener is for both families. */
export function addressOf (socket: Pick<Socket, 'remoteAddress'>): string {
  const address = socket.remoteAddress ?? ''
  return address.startsWith('::ffff:') ? address.slice(7) : address
}
