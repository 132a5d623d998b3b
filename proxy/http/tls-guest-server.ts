// The server for one VM's TLS connections to one port. Each VM has its own, so that its TLS tickets, limits and faults do not affect other VMs.
import { Server as PlainServer } from 'node:http'
import { createSecureServer, type Http2SecureServer, type Http2Session, type IncomingHttpHeaders, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { Duplex } from 'node:stream'
import type { SecureContext, TLSSocket } from 'node:tls'
import { GuestConnection } from '../vms/connection.ts'
import type { ReasonCode } from '../contract/reasons.ts'
import { endWhenGivenUp } from '../upstream/given-up.ts'
import { createHttp2Handler } from './http2/handler.ts'
import { httpOptions, serve } from './http1/guest-server.ts'
import { createHttp1Handler } from './http1/handler.ts'
import { errorCode } from '../log/error-code.ts'
import { canonicalHost } from '../contract/canonical-host.ts'
import type { Services } from '../vms/services.ts'
import type { GuestServer, Vm } from '../vms/vm.ts'
import { CIPHERS } from '../tls/ciphers.ts'

/** What was read of a client's first message. */
interface Greeting {
  readonly name: string
  readonly refusal: ReasonCode | undefined
}

/** what a guest may send ahead on a stream: as long as its origin does not read, the proxy holds this much for each request */
const HTTP2_WINDOW_BYTES = 256 * 1024
/** the same for all streams of a connection together; Node's default would let a single stream have 64 KiB under way */
const HTTP2_CONNECTION_WINDOW_BYTES = 1024 * 1024

/** Makes the server. It does not listen; connections are handed to it. @param port that the guest connected to */
export function createTlsGuestServer (vm: Vm, port: number, services: Services): GuestServer {
  const connections = new WeakMap<Duplex, GuestConnection>()
  const recordTls = tlsRecorder(vm, port, services)
  const tls = createTlsServer(vm, services, recordTls)
  const sessions = new Set<ServerHttp2Session>()

  serve(tls, createHttp1Handler({ vm, services, connectionOf: socket => connections.get(socket), reparse: socket => { tls.emit('secureConnection', socket) } }))
  const bySession = new WeakMap<Http2Session, GuestConnection>()
  const http2 = createHttp2Handler({ vm, services })
  let arriving: { readonly connection: GuestConnection, readonly socket: TLSSocket } | undefined
  tls.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _flags: number, rawHeaders: string[]) => {
    const connection = stream.session === undefined ? undefined : bySession.get(stream.session)
    if (connection === undefined) return stream.destroy()
    connection.used = true
    connection.streams++
    stream.once('close', () => { connection.streams-- })
    http2(connection, stream, headers, rawHeaders)
  })
  // Added before Node's own listener, which starts to read requests.
  tls.prependListener('secureConnection', socket => vm.runFor(socket, () => {
    // A request that was resumed without its upgrade brings its connection here again.
    if (connections.has(socket)) return
    const host = typeof socket.servername === 'string' ? canonicalHost(socket.servername) : undefined
    const connection = new GuestConnection(vm, host?.name, { secure: true, port })
    arriving = { connection, socket }
    connections.set(socket, connection)
    // Many clients finish the handshake before they check the certificate. That such a client then closes the connection is the only sign that it does not trust the CA.
    socket.once('close', () => vm.runFor(socket, () => { if (!connection.used) recordTls(socket, connection.serverName ?? '', 'no_request') }))
  }))
  // Node emits the session within the 'secureConnection' event of its connection; later it shows the connection only through a proxy object.
  tls.on('session', session => vm.runFor(session, () => {
    const socket = arriving?.socket
    if (arriving !== undefined) bySession.set(session, arriving.connection)
    session.setLocalWindowSize(HTTP2_CONNECTION_WINDOW_BYTES)
    sessions.add(session)
    endWhenGivenUp(session, () => socket?.destroy())
    session.once('close', () => sessions.delete(session))
    // A listener that is given along with the time hears of the first silence alone, in which a request may have been under way.
    session.setTimeout(services.limits.keepAliveMs)
    session.on('timeout', () => { if (bySession.get(session)?.streams === 0) session.destroy() })
  }))
  // Node watches for slow headers only from a server's own 'listening' event on.
  tls.emit('listening')
  return {
    accept (socket) {
      tls.emit('connection', socket)
    },
    drain () {
      Reflect.apply(PlainServer.prototype.closeIdleConnections, tls, [])
      for (const session of sessions) session.close()
    },
    close () {
      tls.close()
    }
  }
}

function createTlsServer (vm: Vm, services: Services, recordTls: TlsRecorder): Http2SecureServer {
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
    // The server has no certificate of its own, so it ends the handshake with an alert when this gives none.
    SNICallback: function (this: unknown, name: string, done: (error: Error | null, context?: SecureContext) => void) {
      const context = contextFor(vm, name, services)
      const refusal = typeof context === 'string' ? context : undefined
      // Node calls this with the connection as `this`.
      if (typeof this === 'object' && this !== null) greetings.set(this, { name, refusal })
      done(null, typeof context === 'string' ? undefined : context)
    }
  })
  // Http2SecureServer reads these from itself when it serves HTTP/1.1.
  Object.assign(server, httpOptions(services), { maxHeadersCount: 0 })
  server.on('tlsClientError', (error, socket) => vm.runFor(socket, () => {
    const greeting = greetings.get(socket)
    recordTls(socket, greeting?.name ?? '', greeting?.refusal ?? handshakeReason(error, greeting))
    socket.destroy()
  }))
  return server
}

/** The certificate for a name, or why there is none. It never throws: on some versions of Node an exception here would end the program. */
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

type TlsRecorder = (socket: TLSSocket, host: string, reason: ReasonCode) => void

function tlsRecorder (vm: Vm, port: number, services: Services): TlsRecorder {
  return ({ bytesRead: bytesIn, bytesWritten: bytesOut }, host, reason) => {
    services.audit.record({ vm: vm.id, revision: vm.policy.revision, protocol: 'tls', host, port, injected: [], reason, bytesIn, bytesOut, durationMs: 0 })
  }
}

function handshakeReason (error: Error, greeting: Greeting | undefined): ReasonCode {
  const code = errorCode(error) ?? ''
  if (code === 'ERR_TLS_HANDSHAKE_TIMEOUT') return 'handshake_timeout'
  // OpenSSL's errors in TLS 1.2 and 1.3 when the server has no certificate to choose.
  const nothingToChoose = code === 'ERR_SSL_NO_SHARED_CIPHER' || code === 'ERR_SSL_NO_SUITABLE_SIGNATURE_ALGORITHM'
  return nothingToChoose && greeting === undefined ? 'no_server_name' : 'handshake_failed'
}
