// Requests to origins over HTTP/1.1, by Node's own client: README.md says why not by http-proxy.
import { request as httpRequest, type ClientRequest } from 'node:http'
import { Refusal } from '../gate/reasons.ts'
import type { UpstreamCall } from './upstream.ts'

/** Asks the pool of an origin for a connection; the header is written line by line when it is there. */
export function sendRequest (call: UpstreamCall): void {
  let outgoing: ClientRequest
  try {
    outgoing = openRequest(call)
  } catch (error) {
    // A path that would end the request line. The guest's parsers take none; this is the last one who looks.
    return call.failed(new Refusal('bad_request', { cause: error }))
  }
  outgoing.once('socket', () => call.ready(outgoing))
  outgoing.on('response', response => call.answered(response))
  outgoing.on('error', error => call.failed(error))
}

function openRequest ({ origin: { agent, target }, method, path }: UpstreamCall): ClientRequest {
  // The agent's connections are made by `dial`, for the canonical name; Node wants a host all the same.
  return httpRequest({ agent, protocol: agent.protocol, host: target.host.name, port: target.port, method, path, setHost: false })
}
