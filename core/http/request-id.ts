// Gives each request an id that its log lines and its answer share.
import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

const SANE = /^[A-Za-z0-9._:-]{1,128}$/

/** Fastify's `genReqId`: the caller's `x-request-id` when it is valid, else a number behind a prefix that is random per process. */
export function requestIds (): (request: { readonly headers: IncomingHttpHeaders }) => string {
  const prefix = randomBytes(6).toString('hex')
  let count = 0
  return (request) => {
    const given = request.headers['x-request-id']
    if (typeof given === 'string' && SANE.test(given)) return given
    count += 1
    return `${prefix}-${count.toString(36)}`
  }
}
