// `berth port-forward`: forwards ports of this host to an instance, as long as the command runs.
import { createServer, type AddressInfo, type Server } from 'node:net'
import { once } from 'node:events'
import type { Api } from '../api/client.ts'
import { path } from '../api/path.ts'
import { Failure } from '../failure.ts'
import { mappingOf, type Mapping } from '../forward/mapping.ts'
import { relay } from '../forward/relay.ts'
import type { Session } from '../session.ts'
import type { Run } from '../spec.ts'
import type { Instance } from '../views.ts'

/** connections at the same time, for each port */
const MOST_CONNECTIONS = 256

export const run: Run = async (session, input) => {
  const mappings = input.many(1).map(mappingOf)
  const api = await session.api()
  const { name } = await api.call<Instance>('GET', path`/instances/${input.argument(0)}`)
  const servers: Server[] = []
  try {
    for (const mapping of mappings) {
      const server = await listen(session, api, name, mapping)
      servers.push(server)
      const { address, port } = server.address() as AddressInfo
      session.line(session.format === 'table' ? `${address.includes(':') ? `[${address}]` : address}:${port} → ${name}:${mapping.remote}` : JSON.stringify({ address, port, instance: name, remote: mapping.remote }))
    }
    await once(session.interrupted, 'abort')
    return 0
  } finally {
    for (const server of servers) server.close()
  }
}

async function listen (session: Session, api: Api, instance: string, { address, local, remote }: Mapping): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (caller) => {
    // An error ends only its own connection and is reported; the next one may succeed.
    relay(api, instance, remote, caller, session.interrupted).catch((error: unknown) => {
      if (!session.interrupted.aborted) session.complain(error instanceof Failure ? error : new Failure(String(error)))
    })
  })
  server.maxConnections = MOST_CONNECTIONS
  server.listen(local, address)
  try {
    await once(server, 'listening')
  } catch (error) {
    throw new Failure(`${address}:${local} cannot be listened on: ${error instanceof Error ? error.message : String(error)}`)
  }
  return server
}
