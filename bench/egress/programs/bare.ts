// The forwarder that our proxy is compared with: it accepts TLS and forwards over TLS on kept connections, and checks nothing.
import { Agent, createServer, request } from 'node:https'
import type { ServerGiven } from '../child.ts'
import { given, say } from './given.ts'

const { place, cert, key, ca, to, host } = given<ServerGiven & { readonly host: string }>()
const agent = new Agent({ keepAlive: true, ca, servername: host })

createServer({ cert, key }, (incoming, response) => {
  const outgoing = request({ agent, host: to?.address, port: to?.port, method: incoming.method, path: incoming.url, headers: incoming.headers }, answer => {
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    answer.pipe(response)
  })
  outgoing.on('error', () => response.destroy())
  incoming.pipe(outgoing)
}).listen(place.port, place.address, () => say('listening'))
