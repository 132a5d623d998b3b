// Listening sockets of the host, for a process that lives in the guests' network: it inherits them, so it needs no privilege for a port.
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { hasCode } from '../../../core/errors/system-code.ts'

export interface ListenersAt {
  readonly address: string
  readonly ports: readonly number[]
}

export interface Listeners {
  readonly descriptors: readonly number[]
  close (): void
}

/** The descriptors must be passed on before the next turn of the event loop: until `close`, this server would accept connections. */
export async function openListeners ({ address, ports }: ListenersAt): Promise<Listeners> {
  const servers: Server[] = []
  const close = (): void => { for (const server of servers) server.close() }
  try {
    for (const port of ports) {
      const server = createServer((socket) => socket.destroy())
      servers.push(server)
      server.listen({ host: address.startsWith('[') ? address.slice(1, -1) : address, port, backlog: 1024, exclusive: true, ipv6Only: true })
      await once(server, 'listening')
    }
    return { descriptors: servers.map(descriptorOf), close }
  } catch (error) {
    close()
    if (hasCode(error, 'EADDRINUSE')) throw new Error(`plugins.ingress.config.listen: port ${ports[servers.length - 1] ?? 0} of ${address} is in use by another program`, { cause: error })
    throw error
  }
}

/** Node's public interface passes sockets only to Node; this internal field has the number. */
function descriptorOf (server: Server): number {
  const handle: unknown = Reflect.get(server, '_handle')
  const fd: unknown = typeof handle === 'object' && handle !== null ? Reflect.get(handle, 'fd') : undefined
  if (typeof fd !== 'number' || fd < 0) throw new Error(`Node.js ${process.version} does not tell the descriptor of a listening socket`)
  return fd
}
