// The only network access of the tools that talk to registries: a forward proxy in this server. Each use has its own password, which determines what it may reach.
import { randomBytes } from 'node:crypto'
import * as http from 'node:http'
import { connect, isIP, type Server, type Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import type { Duplex } from 'node:stream'
import { AddressRefused, pinned, type Endpoint, type ResolveHost } from '../../../core/library/addresses.ts'

/** The endpoints of this host that one use may reach by name, in addition to public ones. */
export type LocalNames = ReadonlyMap<string, Endpoint>

export interface Use {
  readonly username: string
  readonly password: string
  /** `host:port` of each refused request, in order */
  readonly refused: readonly string[]
  /** whether more than `maxBytes` came: then the use was closed */
  readonly isExceeded: boolean
  /** from all its connections together */
  readonly receivedBytes: number
  /** Ends its connections. */
  close (): void
}

interface OpenUse extends Use {
  readonly names: LocalNames
  readonly refused: string[]
  readonly sockets: Set<Duplex>
  readonly maxBytes: number
  receivedBytes: number
  isExceeded: boolean
}

const CONNECT_TIMEOUT_MS = 10_000
const IDLE_TIMEOUT_MS = 300_000
const MOST_REFUSALS = 16
const HOP_BY_HOP = new Set(['connection', 'expect', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'])

export class ForwardProxy {
  readonly #resolve: ResolveHost
  readonly #uses = new Map<string, OpenUse>()
  readonly #server: http.Server

  constructor (resolve: ResolveHost) {
    this.#resolve = resolve
    // A large layer takes its time; a stalled connection ends by other limits.
    this.#server = http.createServer({ requestTimeout: 0 }, (request, response) => {
      this.#forward(request, response).catch(() => { response.destroy() })
    })
    this.#server.on('connect', (request, socket: Duplex, head: Buffer) => {
      socket.on('error', () => { socket.destroy() })
      this.#tunnel(request, socket, head).catch(() => { socket.destroy() })
    })
  }

  /** Takes the connections that come to a listener. */
  serve (listener: Server): void {
    listener.on('connection', (socket: Socket) => { this.#server.emit('connection', socket) })
  }

  /** @param maxBytes limit on the bytes from all its connections together */
  open (names: LocalNames, maxBytes = Infinity): Use {
    const [username, password] = [randomBytes(8).toString('hex'), randomBytes(24).toString('hex')]
    const key = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
    const use: OpenUse = {
      username,
      password,
      names,
      refused: [],
      sockets: new Set(),
      maxBytes,
      receivedBytes: 0,
      isExceeded: false,
      close: () => {
        this.#uses.delete(key)
        for (const socket of use.sockets) socket.destroy()
      }
    }
    this.#uses.set(key, use)
    return use
  }

  close (): void {
    for (const use of this.#uses.values()) use.close()
    this.#server.closeAllConnections()
  }

  async #tunnel (request: http.IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const use = this.#useOf(request)
    const target = endpointOf(`http://${request.url ?? ''}`)
    if (use === undefined || target === undefined) {
      socket.end(`HTTP/1.1 ${use === undefined ? '407 Proxy Authentication Required' : '400 Bad Request'}\r\nContent-Length: 0\r\n\r\n`)
      return
    }
    const upstream = await this.#dial(use, target).catch((error: unknown) => error)
    if (upstream instanceof Error) {
      socket.end(`HTTP/1.1 ${statusOf(upstream)} ${http.STATUS_CODES[statusOf(upstream)] ?? ''}\r\nContent-Length: 0\r\n\r\n`)
      return
    }
    if (!isSocket(upstream)) return
    this.#join(use, socket, upstream)
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
    upstream.write(head)
    await Promise.all([pipeline(socket, upstream), pipeline(upstream, socket)])
  }

  async #forward (request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const use = this.#useOf(request)
    const target = request.url?.startsWith('http://') === true ? endpointOf(request.url) : undefined
    if (use === undefined || target === undefined) {
      response.writeHead(use === undefined ? 407 : 400).end()
      return
    }
    const socket = await this.#dial(use, target).catch((error: unknown) => error)
    if (socket instanceof Error) {
      response.writeHead(statusOf(socket), { 'content-type': 'text/plain' }).end(socket.message)
      return
    }
    if (!isSocket(socket)) return
    this.#join(use, request.socket, socket)
    const { pathname, search } = new URL(request.url ?? '')
    const upstream = http.request({ createConnection: () => socket, method: request.method, path: pathname + search, headers: passed(request.rawHeaders), setHost: false })
    upstream.on('error', () => { response.destroy() })
    upstream.on('response', (answer) => {
      answered(answer, response).catch(() => {
        upstream.destroy()
        response.destroy()
      })
    })
    // Nothing that can be passed on, such as another protocol.
    upstream.on('close', () => { if (!response.headersSent) response.destroy() })
    response.on('close', () => { upstream.destroy() })
    // A registry may refuse before it has read everything: then its answer counts.
    await pipeline(request, upstream).catch(() => { if (!response.headersSent) response.destroy() })
  }

  #useOf (request: http.IncomingMessage): OpenUse | undefined {
    return this.#uses.get(request.headers['proxy-authorization'] ?? '')
  }

  async #dial (use: OpenUse, target: Endpoint): Promise<Socket> {
    const local = use.names.get(`${target.host}:${target.port}`)
    try {
      return local === undefined ? await dial(target.port, await this.#resolve(target)) : await dialLocal(local)
    } catch (error) {
      if (error instanceof AddressRefused && use.refused.length < MOST_REFUSALS) use.refused.push(error.endpoint)
      throw error instanceof Error ? error : new Error(String(error))
    }
  }

  /** Both sides end together, and with their use. */
  #join (use: OpenUse, near: Duplex, far: Socket): void {
    for (const socket of [near, far]) {
      // A connection that carries several requests.
      if (use.sockets.has(socket)) continue
      use.sockets.add(socket)
      socket.on('error', () => { socket.destroy() })
      socket.once('close', () => { use.sockets.delete(socket) })
    }
    far.on('data', ({ length }: Buffer) => {
      use.receivedBytes += length
      if (use.receivedBytes <= use.maxBytes) return
      use.isExceeded = true
      use.close()
    })
    far.setTimeout(IDLE_TIMEOUT_MS, () => { far.destroy() })
  }
}

async function dialLocal ({ host, port }: Endpoint): Promise<Socket> {
  const plain = host.replace(/^\[(.*)\]$/, '$1')
  return isIP(plain) === 0 ? await dial(port, ['127.0.0.1', '::1']) : await dial(port, [plain])
}

/** Connects to the first of the addresses that answers. */
async function dial (port: number, addresses: readonly string[]): Promise<Socket> {
  // A name that is never looked up: it stands for these addresses.
  const socket = connect({ host: 'pinned.invalid', port, lookup: pinned(addresses), autoSelectFamily: true })
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(() => { socket.destroy(new Error('the host does not answer')) }, CONNECT_TIMEOUT_MS)
    socket.once('connect', () => {
      clearTimeout(timer)
      resolve(socket)
    })
    socket.once('error', (error) => {
      clearTimeout(timer)
      reject(error)
    })
  })
}

/** Passes on the answer of a registry, which may be invalid. */
async function answered (answer: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
  response.writeHead(answer.statusCode ?? 502, passed(answer.rawHeaders))
  await pipeline(answer, response)
}

function passed (rawHeaders: readonly string[]): string[] {
  const headers: string[] = []
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name = '', value = ''] = [rawHeaders[at], rawHeaders[at + 1]]
    if (!HOP_BY_HOP.has(name.toLowerCase())) headers.push(name, value)
  }
  return headers
}

function endpointOf (url: string): Endpoint | undefined {
  if (!URL.canParse(url)) return undefined
  const { hostname, port } = new URL(url)
  return hostname === '' ? undefined : { host: hostname, port: port === '' ? 80 : Number(port) }
}

function statusOf (error: Error): 403 | 502 {
  return error instanceof AddressRefused ? 403 : 502
}

function isSocket (value: unknown): value is Socket {
  return typeof value === 'object' && value !== null && 'setTimeout' in value
}
