// The registry for a client that is identified by its connection: HTTP on streams without a port, with the rights of a grant. The client may be hostile.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Logger } from '../../core/contracts/services.ts'
import { hasBody } from '../../core/http/has-body.ts'
import { errorAnswer, type RegistryError } from './answers.ts'
import type { RegistryChannel, RegistryGrant } from './contract.ts'
import type { Gateway } from './gateway.ts'
import { mayUse, withoutForeignMount } from './grant.ts'
import type { Relay } from './relay.ts'
import { readRequest } from './requests.ts'

export interface ChannelOptions {
  readonly grant: RegistryGrant
  readonly relay: Relay
  /** for this channel alone; it is closed with the channel */
  readonly gateway: Gateway
  readonly log: Logger
  /** identifies this grant as an owner of uploads */
  readonly owner: string
  /** called once when it is revoked */
  readonly revoked: () => void
  /** the host name for events about pushes: the Host that this client sends is not trusted */
  readonly host: () => string
}

const HEADERS_TIMEOUT_MS = 30_000
// Time for the client to read the rest of an answer; then its side is closed.
const LINGER_MS = 10_000
const MAX_CONNECTIONS = 64
const VERSION = { 'docker-distribution-api-version': 'registry/2.0' } as const

export function openChannel (options: ChannelOptions): RegistryChannel {
  // Uploads may be of any size and speed, so a whole request has no time limit.
  const server = createServer({ headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: 0, connectionsCheckingInterval: HEADERS_TIMEOUT_MS / 3 })
  const connections = new Set<Duplex>()
  const last = new WeakMap<Duplex, ServerResponse>()
  let isRevoked = false
  server.on('request', (request, response) => {
    const { socket } = request
    // No client of a registry pipelines, and each request would cost something before its answer could be held back.
    if (socket.writableEnded || last.get(socket)?.writableEnded === false) return socket.destroy()
    last.set(socket, response)
    answer(options, request, response)
  })
  // It never listens; this event makes Node start to check the time limits of its connections, and close() ends that.
  server.emit('listening')

  return {
    serve (connection) {
      if (isRevoked || connections.size >= MAX_CONNECTIONS) {
        connection.on('error', () => undefined)
        connection.destroy()
        return
      }
      connections.add(connection)
      attend(connection, options.log, () => { connections.delete(connection) })
      server.emit('connection', connection)
    },
    revoke () {
      if (isRevoked) return
      isRevoked = true
      server.close()
      for (const connection of connections) connection.destroy()
      options.gateway.close()
      options.revoked()
    }
  }
}

/** Node does not close a stream that is no socket after its last answer. */
function attend (connection: Duplex, log: Logger, closed: () => void): void {
  let timer: NodeJS.Timeout | undefined
  connection.on('error', (error) => { log.debug({ reason: error.message }, 'a connection to the registry broke') })
  connection.once('finish', () => {
    connection.resume()
    timer = setTimeout(() => { connection.destroy() }, LINGER_MS)
  })
  connection.once('close', () => {
    clearTimeout(timer)
    closed()
  })
}

function answer ({ grant, relay, host, owner }: ChannelOptions, request: IncomingMessage, response: ServerResponse): void {
  const { method = '', url = '' } = request
  const path = url.split('?', 1)[0] ?? ''
  const asked = readRequest(method, path)
  if (asked === undefined) {
    const isPing = (path === '/v2/' || path === '/v2') && (method === 'GET' || method === 'HEAD')
    if (!isPing) return refuse(response, 'unsupported', `the registry has no ${method} ${path}`)
    response.writeHead(200, { ...VERSION, 'content-type': 'application/json' }).end(method === 'HEAD' ? undefined : '{}')
    return
  }
  if (!mayUse(grant, asked)) return refuse(response, 'denied', `this connection gives no right to ${method} ${path}`)
  // http-proxy would pass the body of a DELETE on as the next request, and the store looks for parameters in the body of a POST.
  if ((method === 'DELETE' || method === 'POST') && hasBody(request.headers)) return refuse(response, 'body-refused', `a ${method} request must not have a body`)
  if (asked.startsUpload === true) request.url = withoutForeignMount(grant, url)
  const isQuiet = asked.repository !== undefined && grant.quiet?.includes(asked.repository) === true
  relay.serve(request, response, { asked, host: host(), quiet: isQuiet }, owner)
}

/** The rest of a refused request is not read: the connection ends. */
function refuse (response: ServerResponse, error: RegistryError, message: string): void {
  const { status, body } = errorAnswer(error, message)
  response.writeHead(status, { ...VERSION, 'content-type': 'application/json', connection: 'close' }).end(JSON.stringify(body))
}
