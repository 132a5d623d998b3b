// The addresses at which the API listens, and their orderly end.
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { withDeadline } from './plugins/deadline.ts'
import { listenSecurely, type SecureListener, type SecureListenerOptions } from './tls/listener.ts'

/** How long closing may take once the connections have been cut. */
const CLOSE_TIMEOUT_MS = 5_000

export interface Listener {
  /** Listens on `host:port`; port 0 takes a free one. */
  listen (address: string): Promise<void>
  /** Listens with TLS in addition. To be called when the plain listener is up. */
  listenSecurely (address: string, options: Omit<SecureListenerOptions, 'host' | 'port'>): Promise<void>
  /** `http://host:port`, at which this host reaches the API. Throws when it does not listen. */
  url (): string
  /** `https://host:port`; undefined without TLS */
  secureUrl (): string | undefined
  /** Accepts no more requests and returns when those that run have ended or been cut. */
  close (drainMs: number): Promise<void>
}

/** Makes the listener of an instance. */
export function createListener (http: FastifyInstance): Listener {
  let secure: SecureListener | undefined
  return {
    async listen (address) {
      const { host, port } = splitAddress(address)
      // Fastify logs a line of its own; the one line `listening` is logged by the application, once everything is up.
      await http.listen({ host, port, listenTextResolver: place => `API socket open at ${place}` })
    },
    async listenSecurely (address, options) {
      secure = await listenSecurely(http.server, { ...splitAddress(address), ...options })
    },
    url () {
      const address = http.server.address()
      if (address === null || typeof address === 'string') throw new Error('the server does not listen yet')
      return urlOf('http', address)
    },
    secureUrl: () => secure === undefined ? undefined : urlOf('https', secure.address()),
    // The instance itself cuts connections when its drain time is over; the deadline is for a hook that never ends.
    close: drainMs => withDeadline('closing the API', drainMs + CLOSE_TIMEOUT_MS, undefined, async () => { await Promise.all([http.close(), secure?.close()]) })
  }
}

function splitAddress (address: string): { host: string, port: number } {
  const colon = address.lastIndexOf(':')
  return { host: address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(address.slice(colon + 1)) }
}

/** A server that listens on every address can be reached through loopback. */
function urlOf (scheme: 'http' | 'https', { address, family, port }: AddressInfo): string {
  if (address === '0.0.0.0') return `${scheme}://127.0.0.1:${port}`
  if (address === '::') return `${scheme}://[::1]:${port}`
  return family === 'IPv6' ? `${scheme}://[${address}]:${port}` : `${scheme}://${address}:${port}`
}
