// Lets skopeo use a bearer token that must not be in its arguments: skopeo sends requests to this loopback relay with a password from its 0600
// login file, and the relay sends them to the registry with the token. It exists for one pull or push, and writes only for a push.
import { randomBytes, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import * as http from 'node:http'
import * as https from 'node:https'
import type { LookupFunction } from 'node:net'
import { pipeline } from 'node:stream/promises'

export interface TokenRelay {
  /** `127.0.0.1:port`, plain HTTP */
  readonly endpoint: string
  readonly username: string
  readonly password: string
  close (): Promise<void>
}

export interface RelayTarget {
  /** `host` or `host:port` of the registry */
  readonly host: string
  readonly token: string
  /** whether plain HTTP and unknown certificates are allowed */
  readonly insecure: boolean
  /** whether it passes on what changes the registry */
  readonly writes: boolean
  /** the addresses that the registry's name means; absent for one that is an address */
  readonly lookup?: LookupFunction
}

// The headers that readers and writers of a registry need; skopeo's own login is never passed on.
const FORWARDED_REQUEST_HEADERS = ['accept', 'range', 'user-agent', 'if-none-match', 'content-type', 'content-length', 'content-range'] as const
const READING = ['GET', 'HEAD']
const WRITING = ['POST', 'PATCH', 'PUT']
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'transfer-encoding', 'upgrade', 'proxy-authenticate', 'te', 'trailer', 'www-authenticate'])
const PROBE_TIMEOUT_MS = 10_000
// A registry chooses paths, too, by the locations that it names. Two slashes at the beginning can be read as another host, and other characters are refused by Node.
const PATH = /^\/(?![/\\])[\x21-\xff]*$/

export async function openTokenRelay (target: RelayTarget): Promise<TokenRelay> {
  const username = 'berth'
  const password = randomBytes(24).toString('base64url')
  const expected = Buffer.from(`Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`)
  const origin = new URL(`${!target.insecure || await speaksTls(target) ? 'https' : 'http'}://${target.host}`)
  const methods = target.writes ? [...READING, ...WRITING] : READING
  const server = http.createServer((request, response) => {
    const given = Buffer.from(request.headers.authorization ?? '')
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="relay"' }).end()
    } else if (!methods.includes(request.method ?? '')) {
      response.writeHead(405).end()
    } else if (!PATH.test(request.url ?? '')) {
      response.writeHead(400).end()
    } else {
      forward(request, response, target, origin)
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the relay got no port')
  return {
    endpoint: `127.0.0.1:${address.port}`,
    username,
    password,
    async close () {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    }
  }
}

function forward (request: http.IncomingMessage, response: http.ServerResponse, target: RelayTarget, origin: URL): void {
  const headers: Record<string, string> = { authorization: `Bearer ${target.token}` }
  for (const name of FORWARDED_REQUEST_HEADERS) {
    const value = request.headers[name]
    if (typeof value === 'string') headers[name] = value
  }
  // The path is passed on as it is: resolved, it could name another host, and `lookup` is not asked for one that is an address.
  const upstream = (origin.protocol === 'https:' ? https : http).request(origin, {
    method: request.method, path: request.url, headers, rejectUnauthorized: !target.insecure, ...target.lookup === undefined ? {} : { lookup: target.lookup }
  })
  // skopeo reports the failure: it sees a broken answer or a 502.
  const fail = (error: Error): void => {
    if (response.headersSent || response.destroyed) response.destroy(error)
    else response.writeHead(502, { 'content-type': 'text/plain' }).end(error.message)
  }
  upstream.on('error', fail)
  upstream.on('response', (answer) => {
    try {
      response.writeHead(answer.statusCode ?? 502, answerHeaders(answer, origin.host))
    } catch (error) {
      // An invalid status or header: this one request fails.
      answer.destroy()
      return fail(error instanceof Error ? error : new Error(String(error)))
    }
    pipeline(answer, response).catch(fail)
  })
  // Nothing that can be passed on, such as another protocol.
  upstream.on('close', () => { if (!response.headersSent) fail(new Error('the registry gave no answer')) })
  response.on('close', () => upstream.destroy())
  // A registry may refuse before it has read everything: then its answer counts.
  pipeline(request, upstream).catch((error: unknown) => { if (!response.headersSent) fail(error instanceof Error ? error : new Error(String(error))) })
}

// A redirect to the registry itself, or the location of an upload there, must come back through the relay; one to another host must not carry the token, and does not.
// A location that begins with two slashes is a host to some readers and a path to others: it is not passed on.
function answerHeaders (answer: http.IncomingMessage, host: string): http.OutgoingHttpHeaders {
  const headers = Object.fromEntries(Object.entries(answer.headers).filter(([name]) => !HOP_BY_HOP.has(name)))
  const location = typeof headers['location'] === 'string' ? withoutHost(headers['location'], host) : undefined
  if (location === undefined || /^[/\\]{2}/.test(location)) delete headers['location']
  else headers['location'] = location
  return headers
}

function withoutHost (location: string, host: string): string {
  if (!/^https?:/.test(location)) return location
  const url = new URL(location)
  return url.host === host ? url.pathname + url.search : location
}

// As docker does for an insecure registry: TLS if it answers in TLS, otherwise plain HTTP.
async function speaksTls ({ host, lookup }: RelayTarget): Promise<boolean> {
  const probe = https.request(`https://${host}/v2/`, { rejectUnauthorized: false, timeout: PROBE_TIMEOUT_MS, agent: false, ...lookup === undefined ? {} : { lookup } })
  probe.on('timeout', () => probe.destroy(new Error('no answer')))
  probe.end()
  try {
    // One that answers with another protocol, of which only the end tells, speaks TLS, too.
    const [answer] = await Promise.race([once(probe, 'response'), once(probe, 'close')])
    if (answer instanceof http.IncomingMessage) answer.resume()
    return true
  } catch (error) {
    if (error instanceof Error) return false
    throw error
  } finally {
    probe.destroy()
  }
}
