// Takes the HTTP/1.1 requests of one VM, admits each, and forwards it.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { GuestConnection } from '../../vms/connection.ts'
import type { ReasonCode } from '../../contract/reasons.ts'
import { errorCode } from '../../log/error-code.ts'
import { Exchange } from '../../vms/exchange.ts'
import type { Services } from '../../vms/services.ts'
import type { Vm } from '../../vms/vm.ts'
import { Forward } from './forward.ts'
import { rawRefusal, refuse, refuseOnSocket } from './refuse.ts'
import { readHead, type RequestHead } from './request-head.ts'
import { resumeWithoutUpgrade } from './resume.ts'
import { Tunnel } from './tunnel.ts'

export interface Http1Handler {
  request (request: IncomingMessage, response: ServerResponse): void
  continued (request: IncomingMessage, response: ServerResponse): void
  unexpected (request: IncomingMessage, response: ServerResponse): void
  upgrade (request: IncomingMessage, socket: Duplex, head: Buffer): void
  broken (error: Error, socket: Duplex): void
}

export interface HandlerOptions {
  readonly vm: Vm
  readonly services: Services
  readonly connectionOf: (socket: Duplex) => GuestConnection | undefined
  /** Gives a connection back to the HTTP server it came from. */
  readonly reparse: (socket: Socket) => void
}

/** Makes the listeners for Node's events of requests. */
export function createHttp1Handler (options: HandlerOptions): Http1Handler {
  const { vm, services, connectionOf } = options

  function handle (request: IncomingMessage, response: ServerResponse, expects: 'nothing' | 'continue' | 'unknown'): void {
    const connection = connectionOf(request.socket)
    if (connection === undefined) {
      response.destroy()
      return
    }
    watch(connection, request.socket)
    request.on('error', ignore)
    response.on('error', ignore)
    const head = readHead(request, services.limits)
    const exchange = open(connection, request, head, 'http/1.1')
    const origin = expects === 'unknown' ? 'expectation_failed' : connection.admit(head, vm.exchanges.size, services)
    if (typeof head === 'string' || typeof origin === 'string') {
      const code = typeof head === 'string' ? head : typeof origin === 'string' ? origin : 'bad_request'
      refuse(response, code)
      exchange.status = response.statusCode
      exchange.finish(code)
      return
    }
    exchange.run(() => new Forward({ exchange, request, response, head, origin, expectsContinue: expects === 'continue', services }).start())
  }

  function open (connection: GuestConnection, request: IncomingMessage, head: RequestHead | ReasonCode, protocol: 'http/1.1' | 'websocket'): Exchange {
    const written = typeof head === 'string' ? undefined : head.host
    connection.used = true
    // On a TLS connection it is the name of the handshake: requests for other names are refused.
    const host = connection.serverName ?? hostOf(connection, written)
    const exchange = new Exchange(vm, { protocol, host, port: connection.port, secure: connection.secure, method: request.method ?? '', path: request.url ?? '' }, services)
    exchange.socket = request.socket
    exchange.trace?.goOn(request.headers['traceparent'])
    return exchange
  }

  /** Node tells only the answer that it is about to send of the end of its connection, and none of those that wait behind it. */
  function watch (connection: GuestConnection, socket: Socket): void {
    if (connection.watched) return
    connection.watched = true
    // First those that are told end in their own way.
    socket.once('close', () => setImmediate(() => {
      for (const exchange of [...vm.exchanges]) if (exchange.socket === socket && exchange.subject.protocol === 'http/1.1') exchange.abort('guest_closed')
    }))
  }

  function hostOf (connection: GuestConnection, written: string | undefined) {
    const origin = written === undefined ? 'bad_host' : connection.originFor(written)
    return typeof origin === 'string' ? written ?? '' : origin.target.host.name
  }

  function upgrade (request: IncomingMessage, socket: Duplex, rest: Buffer): void {
    // Before anything else: Node has taken its own listener away, and an error that nobody listens for would end the program.
    socket.on('error', ignore)
    const connection = connectionOf(socket)
    const head = readHead(request, services.limits)
    if (connection === undefined) {
      socket.destroy()
      return
    }
    if (typeof head !== 'string' && (head.upgrade !== 'websocket' || request.method !== 'GET')) {
      resumeWithoutUpgrade(request, socket, rest, options.reparse)
      // Node listens for errors again now; without this, one more listener would stay for each request.
      socket.removeListener('error', ignore)
      return
    }
    const exchange = open(connection, request, head, 'websocket')
    const origin = connection.admit(head, vm.exchanges.size, services)
    if (typeof head === 'string' || typeof origin === 'string') {
      const code = typeof origin === 'string' ? origin : 'bad_request'
      refuseOnSocket(request, socket, code)
      exchange.finish(code)
      return
    }
    exchange.run(() => new Tunnel({ exchange, request, socket, rest, head, origin, services }).start())
  }

  function broken (error: Error, socket: Duplex): void {
    const connection = connectionOf(socket)
    const code = codeOf(error)
    if (connection === undefined || code === undefined) {
      socket.destroy()
      return
    }
    connection.used = true
    const open = [...vm.exchanges].filter(exchange => exchange.socket === socket)
    for (const exchange of open) exchange.abort(code)
    if (open.length === 0) {
      new Exchange(vm, { protocol: 'http/1.1', host: connection.serverName ?? '', port: connection.port, secure: connection.secure, method: '', path: '' }, services).finish(code)
      if (socket.writable) socket.end(rawRefusal(code), () => socket.destroy())
      else socket.destroy()
    }
  }

  return {
    request: (request, response) => vm.runFor(request.socket, () => handle(request, response, 'nothing')),
    continued: (request, response) => vm.runFor(request.socket, () => handle(request, response, 'continue')),
    unexpected: (request, response) => vm.runFor(request.socket, () => handle(request, response, 'unknown')),
    upgrade: (request, socket, head) => vm.runFor(socket, () => upgrade(request, socket, head)),
    broken: (error, socket) => vm.runFor(socket, () => broken(error, socket))
  }
}

function ignore (): void {}

/** The reason for the log; `undefined` when the guest only went away. */
function codeOf (error: Error): ReasonCode | undefined {
  const code = errorCode(error)
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers_too_large'
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'header_timeout'
  return code?.startsWith('HPE_') === true ? 'bad_request' : undefined
}
