// HTTP/1.1 and WebSocket by way of http-proxy. README.md lists what it does wrong on its own and how each is kept from happening here.
import { Agent, ClientRequest, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { Stream, type Duplex } from 'node:stream'
import httpProxy from 'http-proxy'
import type { Origin } from './origin.ts'
import type { UpgradeCall, Upstream, UpstreamCall } from './upstream.ts'

// http-proxy copies a guest's header as Node has joined it; it is given none, and the header is written line by line when a connection is there.
const NO_HEADERS: IncomingHttpHeaders = Object.freeze({})

interface Upgrade {
  readonly call: UpgradeCall
  outgoing: ClientRequest | undefined
}

/** Stands where http-proxy expects the body: so it starts no transfer of its own, and we get its request before anything is written. */
class Handover extends Stream {
  readonly #call: UpstreamCall

  constructor (call: UpstreamCall) {
    super()
    this.#call = call
  }

  override pipe<T extends NodeJS.WritableStream> (destination: T): T {
    if (destination instanceof ClientRequest) attach(destination, this.#call)
    return destination
  }
}

/** Makes the way to origins over HTTP/1.1. */
export function createUpstream (): Upstream {
  const proxy = httpProxy.createProxyServer({ selfHandleResponse: true, toProxy: true, secure: true, xfwd: false, changeOrigin: false, ignorePath: false })
  dropDeleteLength(proxy)
  const upgrades = new WeakMap<IncomingMessage, Upgrade>()
  proxy.on('proxyReqWs', (outgoing, request) => {
    const upgrade = upgrades.get(request)
    if (upgrade === undefined) return outgoing.destroy()
    upgrade.outgoing = outgoing
    outgoing.path = upgrade.call.path
    upgrade.call.prepare(outgoing)
    // Before http-proxy's own listener, which writes the header that it then finds.
    outgoing.on('upgrade', (response: IncomingMessage, socket: Duplex) => upgrade.call.upgraded(response, socket))
  })
  return {
    request (call) {
      if (call.guest === undefined) return direct(call)
      call.guest.request.headers = NO_HEADERS
      const options = { target: targetOf(call.origin), agent: call.origin.agent, buffer: new Handover(call) }
      proxy.web(call.guest.request, call.guest.response, options, error => call.failed(error))
    },
    upgrade (call) {
      // Connected first: http-proxy writes the header at once, and what it writes must be the policy of that moment.
      call.origin.connect().then(socket => {
        if (!call.wanted()) return socket.destroy()
        const upgrade: Upgrade = { call, outgoing: undefined }
        upgrades.set(call.request, upgrade)
        // It looks at this one header itself and destroys the guest's connection when it is not there.
        call.request.headers = { upgrade: 'websocket' }
        proxy.ws(call.request, call.socket, call.head, { target: targetOf(call.origin), agent: new SingleUseAgent(socket, call.origin) }, error => call.failed(error))
        // Its own listener would write a chunked header over a body that Node has de-chunked.
        upgrade.outgoing?.removeAllListeners('response').on('response', response => call.answered(response))
      }, error => call.failed(error))
    }
  }
}

/** An agent for one request on a connection that is there already. */
class SingleUseAgent extends Agent {
  readonly protocol: string
  readonly #socket: Duplex

  constructor (socket: Duplex, origin: Origin) {
    super()
    this.protocol = origin.agent.protocol
    this.#socket = socket
  }

  override createConnection (): Duplex {
    return this.#socket
  }
}

/** A guest that speaks HTTP/2 has no HTTP/1.1 request that http-proxy could take over. */
function direct (call: UpstreamCall): void {
  const { target, agent } = call.origin
  const outgoing = httpRequest({ agent, protocol: agent.protocol, host: target.host.name, port: target.port, method: call.method })
  outgoing.on('error', error => call.failed(error))
  attach(outgoing, call)
}

function attach (outgoing: ClientRequest, call: UpstreamCall): void {
  // http-proxy has joined slashes and re-escaped characters; the request line is not written yet.
  outgoing.path = call.path
  outgoing.once('socket', () => call.ready(outgoing))
  outgoing.on('response', response => call.answered(response))
}

function targetOf ({ target }: Origin): { protocol: string, host: string, port: number } {
  return { protocol: target.secure ? 'https:' : 'http:', host: target.host.name, port: target.port }
}

/** The pass that turns a chunked DELETE into `Content-Length: 0` and a body that the origin takes for the next request (CVE-2026-29057). */
function dropDeleteLength (proxy: object): void {
  const passes: unknown = Reflect.get(proxy, 'webPasses')
  if (!Array.isArray(passes)) throw new Error('this version of http-proxy has no list of passes')
  Reflect.set(proxy, 'webPasses', passes.filter(pass => !(typeof pass === 'function' && pass.name === 'deleteLength')))
}
