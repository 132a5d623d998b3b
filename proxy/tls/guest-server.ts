// The servers that one VM's connections end at. Each VM has its own, so that TLS tickets, limits and faults of one are nothing to another.
import { createServer as createPlainServer, type ServerOptions } from 'node:http'
import { createSecureServer, type Http2SecureServer, type Http2Session, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { Duplex } from 'node:stream'
import type { SecureContext, TLSSocket } from 'node:tls'
import { GuestConnection } from '../gate/connection.ts'
import type { ReasonCode } from '../gate/reasons.ts'
import { endWhenGivenUp } from '../http2/given-up.ts'
import { createHttp2Handler } from '../http2/handler.ts'
import { createHttp1Handler, type Http1Handler } from '../http1/handler.ts'
import { errorCode } from '../log/error-code.ts'
import { canonicalHost } from '../names/canonical-host.ts'
import type { Services } from '../vms/services.ts'
import type { GuestServers, Vm } from '../vms/vm.ts'
import { CIPHERS } from './ciphers.ts'

/** What a client said in its first message, as far as it was read. */
interface Greeting {
  readonly name: string
  readonly refusal: ReasonCode | undefined
}

/** How often Node looks for headers that are too slow. */
const CHECK_MS = 1_000
/** what a guest may send ahead on a stream: as long as its origin does not read, that is held here for each of its requests */
const HTTP2_WINDOW_BYTES = 256 * 1024
/** of all streams of a connection together; Node's own would let a single stream have 64 KiB under way */
const HTTP2_CONNECTION_WINDOW_BYTES = 1024 * 1024

/** Makes the servers of one VM; they listen nowhere, connections are handed to them. */
export function createGuestServers (vm: Vm, services: Services): GuestServers {
  const connections = new WeakMap<Duplex, GuestConnection>()
  const connectionOf = (socket: Duplex) => connections.get(socket)
  const plain = createPlainServer(httpOptions(services))
  const tls = createTlsServer(vm, services)
  const sessions = new Set<ServerHttp2Session>()

  serve(plain, createHttp1Handler({ vm, services, connectionOf, reparse: socket => { plain.emit('connection', socket) } }))
  serve(tls, createHttp1Handler({ vm, services, connectionOf, reparse: socket => { tls.emit('secureConnection', socket) } }))
  const bySession = new WeakMap<Http2Session, GuestConnection>()
  const http2 = createHttp2Handler({ vm, services })
  let arriving: GuestConnection | undefined
  tls.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, rawHeaders: string[]) => {
    const connection = stream.session === undefined ? undefined : bySession.get(stream.session)
    if (connection === undefined) return stream.destroy()
    connection.used = true
    connection.streams++
    stream.once('close', () => { connection.streams-- })
    http2(connection, stream, headers, rawHeaders)
  })
  // Before Node's own listener, which starts to read requests.
  tls.prependListener('secureConnection', socket => vm.runFor(socket, () => {
    // A request that went on without its upgrade brings its connection here again.
    if (connections.has(socket)) return
    const host = typeof socket.servername === 'string' ? canonicalHost(socket.servername) : undefined
    const connection = new GuestConnection(vm, host?.name, true, services)
    arriving = connection
    connections.set(socket, connection)
    // Many clients finish the handshake before they look at the certificate: that they then leave is all there is to see of their distrust.
    socket.once('close', () => vm.runFor(socket, () => { if (!connection.used) recordTls(vm, services, socket, connection.serverName ?? '', 'no_request') }))
  }))
  // Node tells of the session within the 'secureConnection' event of its connection, and shows the connection only through a mask later.
  tls.on('session', session => vm.runFor(session, () => {
    if (arriving !== undefined) bySession.set(session, arriving)
    session.setLocalWindowSize(HTTP2_CONNECTION_WINDOW_BYTES)
    sessions.add(session)
    endWhenGivenUp(session)
    session.once('close', () => sessions.delete(session))
    session.setTimeout(services.limits.keepAliveMs, () => { if (bySession.get(session)?.streams === 0) session.destroy() })
  }))
  // Node watches for slow headers only from a server's own 'listening' event on.
  plain.emit('listening')
  tls.emit('listening')
  return {
    acceptPlain (socket) {
      connections.set(socket, new GuestConnection(vm, undefined, false, services))
      plain.emit('connection', socket)
    },
    acceptTls (socket) {
      tls.emit('connection', socket)
    },
    drain () {
      plain.closeIdleConnections()
      Reflect.apply(plain.closeIdleConnections, tls, [])
      for (const session of sessions) session.close()
    },
    close () {
      plain.close()
      tls.close()
    }
  }
}

function httpOptions ({ limits }: Services): ServerOptions {
  return {
    insecureHTTPParser: false,
    // The gate answers these, so that they have a line in the audit log.
    requireHostHeader: false,
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headerMs,
    // Uploads may take as long as they like; what does not move is found by the sweep.
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: Math.min(CHECK_MS, limits.headerMs),
    noDelay: true
  }
}

function createTlsServer (vm: Vm, services: Services): Http2SecureServer {
  const greetings = new WeakMap<object, Greeting>()
  const server = createSecureServer({
    allowHTTP1: true,
    minVersion: 'TLSv1.2',
    ciphers: CIPHERS,
    handshakeTimeout: services.limits.handshakeMs,
    maxSessionMemory: 16,
    maxSessionRejectedStreams: 100,
    maxSessionInvalidFrames: 100,
    settings: { maxConcurrentStreams: 100, maxHeaderListSize: services.limits.headerBytes, initialWindowSize: HTTP2_WINDOW_BYTES, enableConnectProtocol: false },
    // Without a certificate of its own the server ends every handshake for which this gives none, with an alert.
    SNICallback: function (this: unknown, name: string, done: (error: Error | null, context?: SecureContext) => void) {
      const context = contextFor(vm, name, services)
      const refusal = typeof context === 'string' ? context : undefined
      // Node calls it on the connection.
      if (typeof this === 'object' && this !== null) greetings.set(this, { name, refusal })
      done(null, typeof context === 'string' ? undefined : context)
    }
  })
  // Http2SecureServer takes these from itself when it serves HTTP/1.1.
  Object.assign(server, httpOptions(services), { maxHeadersCount: 0 })
  server.on('tlsClientError', (error, socket) => vm.runFor(socket, () => {
    const greeting = greetings.get(socket)
    recordTls(vm, services, socket, greeting?.name ?? '', greeting?.refusal ?? handshakeReason(error, greeting))
    socket.destroy()
  }))
  return server
}

/** The certificate for a name; why there is none otherwise. It never throws: what throws here would end the program on some versions of Node. */
function contextFor (vm: Vm, name: string, services: Services): SecureContext | ReasonCode {
  const host = canonicalHost(name)
  if (host === undefined || host.family !== 0) return 'bad_server_name'
  const ready = services.contexts.find(vm, host.name)
  if (ready !== undefined) return ready
  if (!vm.newNames.take()) return 'too_many_names'
  try {
    return services.contexts.create(vm, host.name)
  } catch (error) {
    services.log.error('no certificate could be made', error)
    return 'handshake_failed'
  }
}

function recordTls (vm: Vm, services: Services, socket: TLSSocket, host: string, reason: ReasonCode): void {
  const { bytesRead: bytesIn, bytesWritten: bytesOut } = socket
  services.audit.record({ vm: vm.id, revision: vm.policy.revision, protocol: 'tls', host, port: services.ports.https, injected: [], reason, bytesIn, bytesOut, durationMs: 0 })
}

function handshakeReason (error: Error, greeting: Greeting | undefined): ReasonCode {
  const code = errorCode(error) ?? ''
  if (code === 'ERR_TLS_HANDSHAKE_TIMEOUT') return 'handshake_timeout'
  // What OpenSSL says in TLS 1.2 and 1.3 when there is no certificate to choose.
  const nothingToChoose = code === 'ERR_SSL_NO_SHARED_CIPHER' || code === 'ERR_SSL_NO_SUITABLE_SIGNATURE_ALGORITHM'
  return nothingToChoose && greeting === undefined ? 'no_server_name' : 'handshake_failed'
}

interface HttpServer {
  removeAllListeners (event: string): unknown
  on (event: string, listener: (...args: never[]) => void): unknown
}

function serve (server: HttpServer, handler: Http1Handler): void {
  // Http2SecureServer would otherwise also call 'request' listeners for HTTP/2, which has a handler of its own.
  server.removeAllListeners('newListener')
  server.on('request', handler.request)
  server.on('checkContinue', handler.continued)
  server.on('checkExpectation', handler.unexpected)
  server.on('upgrade', handler.upgrade)
  // Without a listener Node would close the connection without an answer, and without a line in the log.
  server.on('connect', handler.upgrade)
  server.on('clientError', handler.broken)
}
