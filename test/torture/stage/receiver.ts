// Who webhooks tell: it notes what comes, and refuses some of it.
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'

/** One of so many deliveries is refused, and comes again. */
const REFUSED_OF = 7

export interface Receiver {
  readonly url: string
  /** what came behind what is later, and had not come before; each with its path */
  readonly disorder: readonly string[]
  close (): void
}

interface Heard { readonly ids: Set<bigint>, newest: bigint }

export async function startReceiver (): Promise<Receiver> {
  const heard = new Map<string, Heard>()
  const disorder: string[] = []
  let count = 0
  const note = (path: string, id: bigint): void => {
    const entry = heard.get(path) ?? { ids: new Set(), newest: 0n }
    heard.set(path, entry)
    // A server that was killed tells what it had not noted once more.
    if (id < entry.newest && !entry.ids.has(id)) disorder.push(`${path} was told of event ${id} behind ${entry.newest}`)
    if (id > entry.newest) entry.newest = id
    entry.ids.add(id)
  }
  const server = createServer((request, response) => {
    request.resume()
    const isRefused = ++count % REFUSED_OF === 0
    if (!isRefused) note(request.url ?? '/', BigInt(String(request.headers['webhook-id'])))
    response.writeHead(isRefused ? 503 : 204).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, disorder, close: () => { server.closeAllConnections(); server.close() } }
}
