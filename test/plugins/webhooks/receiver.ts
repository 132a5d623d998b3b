// A receiver of webhooks on loopback, which answers as a test wants.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Test } from 'tap'

export interface Delivery {
  readonly id: string
  readonly timestamp: string
  readonly signature: string
  readonly body: string
  /** the body, read */
  readonly event: { readonly type: string, readonly id?: string, readonly data?: Readonly<Record<string, unknown>> }
}

export type Answer = (response: ServerResponse, delivery: Delivery, request: IncomingMessage) => void

export interface Receiver {
  readonly url: string
  readonly port: number
  /** all that came, also what was not taken */
  readonly deliveries: Delivery[]
  /** connections that were made */
  connections (): number
  answer: Answer
  /** As a machine that goes down. */
  down (): Promise<void>
  /** On the same port again. */
  up (): Promise<void>
}

export const taken: Answer = (response) => { response.writeHead(204).end() }

export async function startReceiver (t: Test, { answer = taken, tls }: { answer?: Answer, tls?: { readonly cert: string, readonly key: string } } = {}): Promise<Receiver> {
  const deliveries: Delivery[] = []
  let connections = 0
  let port = 0
  let server = make()
  function make (): ReturnType<typeof createServer> {
    const listener: RequestListener = (request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        const body = Buffer.concat(chunks).toString()
        const delivery = { id: String(request.headers['webhook-id']), timestamp: String(request.headers['webhook-timestamp']), signature: String(request.headers['webhook-signature']), body, event: JSON.parse(body) }
        deliveries.push(delivery)
        receiver.answer(response, delivery, request)
      })
    }
    const made = tls === undefined ? createServer(listener) : createSecureServer(tls, listener)
    made.on('connection', () => { connections++ })
    return made
  }
  const up = async (): Promise<void> => {
    if (server.listening) return
    server = make()
    await once(server.listen(port, '127.0.0.1'), 'listening')
    const address = server.address()
    port = typeof address === 'object' && address !== null ? address.port : 0
  }
  const down = async (): Promise<void> => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  const receiver: Receiver = {
    get url () { return `${tls === undefined ? 'http' : 'https'}://${tls === undefined ? '127.0.0.1' : 'localhost'}:${port}/hook` },
    get port () { return port },
    deliveries,
    connections: () => connections,
    answer,
    down,
    up
  }
  await up()
  t.teardown(down)
  return receiver
}
