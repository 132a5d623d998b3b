// The server for one VM's plain connections to one port. Each VM has its own, so that its limits and faults do not affect other VMs.
import { createServer, type ServerOptions } from 'node:http'
import type { Duplex } from 'node:stream'
import { GuestConnection } from '../../vms/connection.ts'
import type { Services } from '../../vms/services.ts'
import type { GuestServer, Vm } from '../../vms/vm.ts'
import { createHttp1Handler, type Http1Handler } from './handler.ts'

/** How often Node looks for headers that are too slow. */
const CHECK_MS = 1_000

/** Makes the server. It does not listen; connections are handed to it. @param port that the guest connected to */
export function createPlainGuestServer (vm: Vm, port: number, services: Services): GuestServer {
  const connections = new WeakMap<Duplex, GuestConnection>()
  const server = createServer(httpOptions(services))
  serve(server, createHttp1Handler({ vm, services, connectionOf: socket => connections.get(socket), reparse: socket => { server.emit('connection', socket) } }))
  // Node watches for slow headers only from a server's own 'listening' event on.
  server.emit('listening')
  return {
    accept (socket) {
      connections.set(socket, new GuestConnection(vm, undefined, { secure: false, port }))
      server.emit('connection', socket)
    },
    drain: () => server.closeIdleConnections(),
    close: () => { server.close() }
  }
}

export function httpOptions ({ limits }: Services): ServerOptions {
  return {
    insecureHTTPParser: false,
    // The gate refuses these, so that each has a line in the audit log.
    requireHostHeader: false,
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headerMs,
    // Uploads may take any time; the sweep ends those that do not move.
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveMs,
    connectionsCheckingInterval: Math.min(CHECK_MS, limits.headerMs),
    noDelay: true
  }
}

interface HttpServer {
  removeAllListeners (event: string): unknown
  on (event: string, listener: (...args: never[]) => void): unknown
}

/** Sends all HTTP/1.1 requests of a server to the handler, whichever event Node reports them with. */
export function serve (server: HttpServer, handler: Http1Handler): void {
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
