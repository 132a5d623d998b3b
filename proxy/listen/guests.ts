// The listeners that redirected connections arrive at: who sends is looked up before a byte is read.
import { createServer, type Server, type Socket } from 'node:net'
import { Bucket } from '../limits/bucket.ts'
import type { Services } from '../vms/services.ts'
import type { VmTable } from '../vms/table.ts'

export type GuestKind = 'plain' | 'tls'

/** Makes a listener for plain HTTP or for TLS. */
export function createGuestListener (kind: GuestKind, table: VmTable, services: Services): Server {
  // A flood from an address without a policy must not fill the log.
  const lines = new Bucket(5)
  // HTTP/1 clients may close their sending side and still wait for the answer.
  const server = createServer({ noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000, allowHalfOpen: kind === 'plain' }, socket => {
    socket.on('error', () => socket.destroy())
    const vm = table.find(addressOf(socket))
    if (vm === undefined) refuse(socket)
    else vm.accept(socket, kind)
  })
  return server

  function refuse (socket: Socket): void {
    const address = addressOf(socket)
    socket.destroy()
    if (!lines.take()) return services.counters.countRefusal('unknown_source')
    const port = kind === 'tls' ? services.ports.https : services.ports.http
    services.audit.record({ vm: '', revision: table.revision ?? -1, protocol: 'tcp', host: address, port, injected: [], reason: 'unknown_source', bytesIn: 0, bytesOut: 0, durationMs: 0 })
  }
}

/** The IPv4 address, also when the listener is one for both families. */
export function addressOf (socket: Pick<Socket, 'remoteAddress'>): string {
  const address = socket.remoteAddress ?? ''
  return address.startsWith('::ffff:') ? address.slice(7) : address
}
