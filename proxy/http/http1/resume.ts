// Requests that offer an upgrade which this proxy does not know (`h2c`, which Java offers by default) are handled without it, as HTTP allows.
import type { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

const LEFT_OUT = new Set(['upgrade', 'http2-settings', 'connection'])

/** Node has taken the connection away from its server: hands the request back to the server, without the offer. */
export function resumeWithoutUpgrade (request: IncomingMessage, socket: Duplex, rest: Buffer, reparse: (socket: Socket) => void): void {
  if (!(socket instanceof Socket)) {
    socket.destroy()
    return
  }
  const lines = [`${request.method} ${request.url} HTTP/1.1`]
  for (let index = 0; index < request.rawHeaders.length; index += 2) {
    const name = request.rawHeaders[index] ?? ''
    if (!LEFT_OUT.has(name.toLowerCase())) lines.push(`${name}: ${request.rawHeaders[index + 1]}`)
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), rest]))
  reparse(socket)
}
