// Posts one body to a receiver, which may be anybody: to a vetted address, for a limited time, without trusting the answer.
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { rootCertificates } from 'node:tls'
import { within } from '../../../core/jobs/deadline.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import { pinned, type ResolveHost } from '../../../core/library/addresses.ts'
import { failureText } from './failure-text.ts'

export interface SenderOptions {
  readonly resolve: ResolveHost
  /** further authorities, PEM */
  readonly roots: readonly string[]
  readonly timeoutMs: number
  readonly userAgent: string
}

/** Why a delivery failed; absent: the receiver has accepted it. */
export interface DeliveryFailure {
  readonly message: string
  /** the receiver wants no more */
  readonly isFinal: boolean
}

export interface Sender {
  send (body: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<DeliveryFailure | undefined>
  close (): void
}

/** limit on an answer's body, which is discarded */
const MOST_BYTES = 65_536
const BODY_MS = 1000
/** how long a connection waits for the next delivery */
const IDLE_MS = 15_000
const GONE = 410

/** One receiver and one connection to it. */
export function createSender (address: string, { resolve: vetted, roots, timeoutMs, userAgent }: SenderOptions): Sender {
  const url = new URL(address)
  const isSecure = url.protocol === 'https:'
  const endpoint = { host: url.hostname, port: url.port === '' ? (isSecure ? 443 : 80) : Number(url.port) }
  const isLiteral = isIP(bare(url.hostname)) !== 0
  // Called for each new connection, which uses its result directly: the name cannot resolve to another address in between.
  const lookup: LookupFunction = (name, options, callback) => {
    vetted(endpoint).then((addresses) => { pinned(addresses)(name, options, callback) }, (error: unknown) => { callback(error instanceof Error ? error : new Error(String(error)), '') })
  }
  const shared = { keepAlive: true, maxSockets: 1, maxFreeSockets: 1, timeout: IDLE_MS, lookup }
  const agent = isSecure ? new HttpsAgent({ ...shared, ...roots.length === 0 ? {} : { ca: [...rootCertificates, ...roots] } }) : new HttpAgent(shared)

  const post = async (body: string, headers: Readonly<Record<string, string>>, signal: AbortSignal): Promise<number> => {
    // Node calls `lookup` only for names.
    if (isLiteral) await vetted(endpoint)
    return await new Promise<number>((resolve, reject) => {
      const request = (isSecure ? httpsRequest : httpRequest)(url, {
        method: 'POST',
        agent,
        signal,
        headers: { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), 'user-agent': userAgent }
      })
      request.on('error', (error) => { reject(request.reusedSocket && hasCode(error, 'ECONNRESET', 'EPIPE') ? new StaleConnection() : error) })
      request.on('response', (response) => {
        discard(response, () => { resolve(response.statusCode ?? 0) })
      })
      // A receiver may answer with another protocol, which nobody asked for. Without a listener Node drops the request, and tells nobody of it: neither an error comes nor the end of the signal.
      request.on('upgrade', (response, socket) => {
        socket.destroy()
        resolve(response.statusCode ?? 0)
      })
      request.end(body)
    })
  }

  return {
    async send (body, headers, ending) {
      return await within(timeoutMs, [ending], async (signal) => {
        try {
          const status = await post(body, headers, signal).catch(async (error: unknown) => {
            if (error instanceof StaleConnection) return await post(body, headers, signal)
            throw error
          })
          return failureOf(status)
        } catch (error) {
          return { message: signal.aborted && !ending.aborted ? `it did not answer within ${timeoutMs / 1000} s` : failureText(error), isFinal: false }
        }
      })
    },
    close () { agent.destroy() }
  }
}

/** The receiver has closed the connection of the previous delivery; that says nothing about this delivery. */
class StaleConnection extends Error {}

function failureOf (status: number): DeliveryFailure | undefined {
  if (status >= 200 && status < 300) return undefined
  if (status >= 300 && status < 400) return { message: `it answered ${status}, and redirects are not followed`, isFinal: false }
  return { message: status === GONE ? `it answered ${GONE}: it wants no more` : `it answered ${status}`, isFinal: status === GONE }
}

/** Reads a short answer to its end, so that the connection can be used again. */
function discard (response: IncomingMessage, done: () => void): void {
  let bytes = 0
  const cut = (): void => { response.destroy() }
  const timer = setTimeout(cut, BODY_MS).unref()
  response.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > MOST_BYTES) cut()
  })
  // The status counts, however the answer's body ends.
  response.on('error', () => {})
  response.on('close', () => {
    clearTimeout(timer)
    done()
  })
}

function bare (host: string): string {
  return host.replace(/^\[(.*)\]$/, '$1')
}
