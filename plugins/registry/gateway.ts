// Passes registry requests to the store and its answers back, as streams. Only this file deals with http-proxy and its faults.
import { request as requestOf, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import httpProxy from 'http-proxy'
import type { Logger } from '../../core/contracts/services.ts'
import { errorAnswer } from './answers.ts'
import { createConnections } from './connections.ts'
import type { Store } from './store.ts'

export interface Gateway {
  /**
   * Serves one request. `stored` runs when the store has answered 201, before the client hears of it.
   * @param owner who asks: a key's id, or a grant's
   */
  serve (request: IncomingMessage, response: ServerResponse, owner: string, stored?: (digest: string) => Promise<void>): void
  /**
   * Serves a request that begins an upload. It is asked to its end although its client leaves: otherwise the store would have made an upload that nobody knows of.
   * @param over called at least once, as soon as no more comes of it: with the store's id of an upload that was begun
   */
  begin (request: IncomingMessage, response: ServerResponse, owner: string, over: (id?: string) => void): void
  close (): void
}

export interface GatewayOptions {
  readonly store: Pick<Store, 'socketPath' | 'said'>
  readonly log: Logger
}

const HOP_BY_HOP = ['connection', 'keep-alive', 'proxy-authenticate', 'proxy-authorization', 'proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade']
// The store must not see keys, and must not build URLs from a client's claims about proxies in front.
const NOT_FOR_STORE = ['authorization', 'cookie', 'expect', 'forwarded', 'x-forwarded-for', 'x-forwarded-host', 'x-forwarded-port', 'x-forwarded-proto', 'x-real-ip']

/** of one event of an answer */
const MOST_LISTENERS = 20

export function createGateway ({ store, log }: GatewayOptions): Gateway {
  const connections = createConnections()
  // Not closed with the others: what the store has begun must be known. They end with their answers, or with the store.
  const beginnings = createConnections()
  const proxy = httpProxy.createProxyServer({ selfHandleResponse: true, xfwd: false, changeOrigin: false })
  const afterwards = new WeakMap<IncomingMessage, (digest: string) => Promise<void>>()

  const fail = ({ method, url = '' }: IncomingMessage, response: ServerResponse, error: Error): void => {
    log.warn({ err: error, method, path: url.split('?', 1)[0], said: store.said() }, 'the registry store did not answer')
    unavailable(response)
  }
  proxy.on('proxyReq', (upstream, _request, response) => {
    // Only an aborted upload ends the store's side by itself; it must also end when a client leaves during the answer, and when an upload is answered before it is complete.
    response.once('close', () => { if (!response.writableFinished || !upstream.writableFinished) upstream.destroy() })
  })
  proxy.on('proxyRes', (answer, request, response) => {
    const stored = afterwards.get(request)
    const digest = answer.headers['docker-content-digest']
    const isStored = stored !== undefined && answer.statusCode === 201 && typeof digest === 'string'
    const ready = isStored ? stored(digest) : Promise.resolve()
    ready.then(() => send(answer, response), (error: unknown) => {
      answer.resume()
      fail(request, response, error instanceof Error ? error : new Error(String(error)))
    })
  })
  // without a listener an error that has no callback would end the process
  proxy.on('error', (error) => log.warn({ err: error }, 'the registry gateway failed'))

  return {
    serve (request, response, owner, stored) {
      const path = store.socketPath()
      // For a client that has left before, `close` does not come again.
      if (path === undefined || response.destroyed) return unavailable(response)
      clean(request)
      if (stored !== undefined) afterwards.set(request, stored)
      request.on('error', () => response.destroy())
      proxy.web(request, response, { agent: connections.of(owner), target: { socketPath: path, host: 'localhost', port: '80' } }, (error) => {
        // Once an answer has begun, its own stream ends it; and a client that has left needs no answer.
        if (!response.headersSent && !response.destroyed) fail(request, response, error)
      })
    },
    begin (request, response, owner, over) {
      const path = store.socketPath()
      if (path === undefined || response.destroyed) {
        over()
        return unavailable(response)
      }
      clean(request)
      request.on('error', () => response.destroy())
      // The store takes all it needs from the URL. It answers before a body has come, so a client that never sends its own could leave uploads behind.
      request.resume()
      const upstream = requestOf({ agent: beginnings.of(owner), socketPath: path, method: request.method, path: request.url, headers: withoutBody(request.headers) })
      upstream.once('response', (answer) => {
        over(begunBy(answer))
        send(answer, response)
      })
      upstream.on('error', (error) => {
        over()
        if (!response.headersSent && !response.destroyed) fail(request, response, error)
      })
      upstream.end()
    },
    close () {
      proxy.close()
      connections.close()
    }
  }
}

// Before web(): http-proxy copies all headers, and does not emit its event for changes when `Expect` is present.
function clean (request: IncomingMessage): void {
  const nominated = (request.headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase())
  for (const name of [...NOT_FOR_STORE, ...nominated]) {
    // without length or encoding a body would have no end
    if (name !== 'content-length' && name !== 'transfer-encoding' && name !== 'host') Reflect.deleteProperty(request.headers, name)
  }
  // The client's wish is about its own connection. A store that is asked to close does so as soon as it has answered, and Node may still have to make an empty last
  // write: on a unix socket that fails with EPIPE, and the answer is lost. The agent ends the connection after it.
  request.headers.connection = 'keep-alive'
}

function withoutBody ({ 'content-length': _length, 'transfer-encoding': _encoding, 'content-type': _type, ...headers }: IncomingHttpHeaders): IncomingHttpHeaders {
  return { ...headers, 'content-length': '0' }
}

function begunBy ({ statusCode, headers: { 'docker-upload-uuid': id } }: IncomingMessage): string | undefined {
  // 201: a blob of another repository was mounted, and there is no upload to continue.
  return statusCode === 202 && typeof id === 'string' ? id : undefined
}

function send (answer: IncomingMessage, response: ServerResponse): void {
  if (response.destroyed) {
    answer.destroy()
    return
  }
  // One by one: headers that are passed to writeHead could not be read by code that inspects the answer.
  for (const [name, value] of Object.entries(answer.headers)) if (value !== undefined && !HOP_BY_HOP.includes(name)) response.setHeader(name, value)
  response.writeHead(answer.statusCode ?? 502)
  // pipeline adds seven listeners of `close` to those of the gateway, the uploads and the key. Node warns of more than ten, as of a leak.
  response.setMaxListeners(MOST_LISTENERS)
  // pipeline ends the client's side when the store dies within an answer, which pipe() would not
  pipeline(answer, response, () => undefined)
}

function unavailable (response: ServerResponse): void {
  if (response.headersSent || response.destroyed) {
    response.destroy()
    return
  }
  const { status, body } = errorAnswer('unavailable', 'the image store does not answer; try again shortly')
  response.writeHead(status, { 'content-type': 'application/json', 'retry-after': '1' }).end(JSON.stringify(body))
}
