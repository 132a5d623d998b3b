// A WebSocket that sends back what it gets, with compression when the client can, and with the one subprotocol that it knows.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'

export function createSocket (): (request: IncomingMessage, socket: Duplex, head: Buffer) => void {
  const server = new WebSocketServer({ noServer: true, perMessageDeflate: true, handleProtocols: (offered) => offered.has('echo.v1') ? 'echo.v1' : false })
  return (request, socket, head) => {
    if (request.url === '/refused') {
      socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 6\r\nX-Why: tested\r\nConnection: close\r\n\r\nnot so')
      return
    }
    server.handleUpgrade(request, socket, head, (client) => {
      // Said at once, so that it may come in one packet with the 101.
      client.send('welcome')
      client.on('message', (data, isBinary) => client.send(data, { binary: isBinary }))
      client.on('error', () => {})
    })
  }
}
