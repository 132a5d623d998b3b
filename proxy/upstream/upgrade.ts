// WebSocket by way of http-proxy. README.md lists what it does wrong on its own and how each is kept from happening here.
import { Agent, type ClientRequest, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import httpProxy from 'http-proxy'
import type { Origin } from './origin.ts'
import type { UpgradeCall } from './upstream.ts'

interface Upgrade {
  readonly call: UpgradeCall
  outgoing: ClientRequest | undefined
}

/** Makes what connects a guest and an origin that changes protocols. */
export function createUpgrade (): (call: UpgradeCall) => void {
  const proxy = httpProxy.createProxyServer({ toProxy: true, secure: true, xfwd: false, changeOrigin: false })
  const upgrades = new WeakMap<IncomingMessage, Upgrade>()
  proxy.on('proxyReqWs', (outgoing, request) => {
    const upgrade = upgrades.get(request)
    if (upgrade === undefined) return outgoing.destroy()
    upgrade.outgoing = outgoing
    // http-proxy has joined slashes and re-escaped characters; the request line is not written yet.
    outgoing.path = upgrade.call.path
    upgrade.call.prepare(outgoing)
    // Before http-proxy's own listener, which writes the header that it then finds.
    outgoing.on('upgrade', (response: IncomingMessage, socket: Duplex) => upgrade.call.upgraded(response, socket))
  })
  return call => {
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

function targetOf ({ target }: Origin): { protocol: string, host: string, port: number } {
  return { protocol: target.secure ? 'https:' : 'http:', host: target.host.name, port: target.port }
}
