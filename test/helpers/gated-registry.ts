// A registry in front of another that holds layers back until it is told otherwise, so that a test can look at a pull on its way.
import { once } from 'node:events'
import { createServer, request as send, type IncomingMessage, type ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import type { Test } from 'tap'

export interface GatedRegistry {
  /** `127.0.0.1:port` */
  readonly host: string
  /** requests for blobs so far */
  readonly blobRequests: number
  /** From now on blobs do not come. */
  hold (): void
  release (): void
  /** Resolves when a blob is being held back. */
  held (): Promise<void>
}

/** Starts one in front of `backend` (`host:port`); the end of the test ends it. */
export async function startGatedRegistry (t: Test, backend: string): Promise<GatedRegistry> {
  let isHolding = false
  let blobRequests = 0
  const waiting = new Set<() => void>()
  let notice: () => void = () => undefined
  const server = createServer((request, response) => {
    const isBlob = request.url?.includes('/blobs/') === true && request.method === 'GET'
    if (isBlob) blobRequests += 1
    if (!isBlob || !isHolding) return forward(backend, request, response)
    const go = (): void => forward(backend, request, response)
    waiting.add(go)
    response.on('close', () => waiting.delete(go))
    notice()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.close(); server.closeAllConnections() })
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  return {
    host: `127.0.0.1:${address.port}`,
    get blobRequests () { return blobRequests },
    hold () { isHolding = true },
    release () {
      isHolding = false
      for (const go of waiting) go()
      waiting.clear()
    },
    async held () {
      if (waiting.size === 0) await new Promise<void>((resolve) => { notice = resolve })
    }
  }
}

function forward (backend: string, request: IncomingMessage, response: ServerResponse): void {
  if (response.destroyed) return
  const upstream = send(`http://${backend}${request.url ?? ''}`, { method: request.method, headers: { ...request.headers, host: backend } }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers)
    pipeline(answer, response, () => undefined)
  })
  upstream.on('error', () => response.destroy())
  pipeline(request, upstream, () => undefined)
}
