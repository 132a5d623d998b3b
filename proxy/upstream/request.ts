// Requests to origins over HTTP/1.1, by Node's own client: README.md says why not by http-proxy.
import { request as httpRequest } from 'node:http'
import type { UpstreamCall } from './upstream.ts'

/** Asks the pool of an origin for a connection; the header is written line by line when it is there. */
export function sendRequest (call: UpstreamCall): void {
  const { target, agent } = call.origin
  // The agent's connections are made by `dial`, for the canonical name; the options only have to be ones that Node takes.
  const outgoing = httpRequest({ agent, protocol: agent.protocol, host: target.host.name, port: target.port, method: call.method, setHost: false })
  // Not given as an option: Node would refuse some paths that an origin may know, and it is not written before the header.
  outgoing.path = call.path
  outgoing.once('socket', () => call.ready(outgoing))
  outgoing.on('response', response => call.answered(response))
  outgoing.on('error', error => call.failed(error))
}
