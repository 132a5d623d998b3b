// The origin of the comparison of workers: one small answer to every request without a body, on bare TLS connections. A full HTTP server on the same
// processors would use a third of what the proxy uses, and would limit what two workers can gain.
import { createServer } from 'node:tls'
import type { ServerGiven } from '../child.ts'
import { given, say } from './given.ts'

const { place, cert, key } = given<ServerGiven>()
const answer = Buffer.from(`HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: ${new Date().toUTCString()}\r\nConnection: keep-alive\r\nContent-Length: 100\r\n\r\n${'x'.repeat(100)}`)
const headEnd = Buffer.from('\r\n\r\n')

const server = createServer({ cert, key, noDelay: true }, socket => {
  let rest: Buffer = Buffer.alloc(0)
  socket.on('error', () => socket.destroy())
  socket.on('data', (chunk: Buffer) => {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    for (let end = rest.indexOf(headEnd); end >= 0; end = rest.indexOf(headEnd)) {
      rest = rest.subarray(end + headEnd.length)
      socket.write(answer)
    }
  })
})
server.listen(place.port, place.address, () => say('listening'))
