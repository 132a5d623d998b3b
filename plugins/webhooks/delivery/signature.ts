// How a receiver knows that a delivery is authentic and new: the headers of Standard Webhooks (standardwebhooks.com).
import { createHmac, randomBytes } from 'node:crypto'

const PREFIX = 'whsec_'
const SECRET_BYTES = 32

export function makeSecret (): string {
  return PREFIX + randomBytes(SECRET_BYTES).toString('base64')
}

/** @param now epoch ms */
export function signed (secret: string, id: string, body: string, now: number): Record<string, string> {
  const timestamp = String(Math.floor(now / 1000))
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64')
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` }
}
