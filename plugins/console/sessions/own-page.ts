// Whether a request with a session's cookie comes from our own page. A browser also sends the cookie with requests of pages on other ports of the same host.
import type { FastifyRequest } from 'fastify'
import { ForeignRequest } from '../errors.ts'

/** A header that no form can send, and that no page of another origin may send, since no answer allows it. */
const PAGE_HEADER = 'x-berth-console'
const SAFE = new Set(['GET', 'HEAD'])

/** @throws ForeignRequest */
export function checkOwnPage (request: FastifyRequest): void {
  const { headers, method } = request.raw
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin' && site !== 'none') throw ForeignRequest('a session is for the console\'s own pages')
  if (SAFE.has(method ?? '')) return
  if (headers[PAGE_HEADER] !== '1') throw ForeignRequest(`header ${PAGE_HEADER}: must be 1 in a request with a session`)
  checkOrigin(request)
}

/** @throws ForeignRequest unless the Origin is this server as the browser sees it */
export function checkOrigin ({ raw: { headers } }: FastifyRequest): void {
  const { origin, host } = headers
  // Only the host: a proxy in front of this server may speak TLS for it. A page of the same host and port without TLS does not get a cookie that was set with TLS.
  if (origin === undefined || !URL.canParse(origin) || new URL(origin).host !== host) throw ForeignRequest('header origin: must be the server that the session is of')
}
