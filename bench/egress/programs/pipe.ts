// The upper bound for one process of Node: bytes from one TLS connection to another, with no HTTP in between.
import { connect, createServer } from 'node:tls'
import type { ServerGiven } from '../child.ts'
import { given, say } from './given.ts'

const { place, cert, key, ca, to, host, http2 } = given<ServerGiven & { readonly host: string, readonly http2: boolean }>()
const ALPNProtocols = [http2 ? 'h2' : 'http/1.1']

createServer({ cert, key, ALPNProtocols, noDelay: true }, guest => {
  const origin = connect({ host: to?.address, port: to?.port, servername: host, ca, ALPNProtocols })
  origin.setNoDelay(true)
  for (const [one, other] of [[guest, origin], [origin, guest]] as const) {
    one.on('error', () => one.destroy())
    one.on('close', () => other.destroy())
    one.pipe(other)
  }
}).listen(place.port, place.address, () => say('listening'))
