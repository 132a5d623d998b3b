import type { IncomingHttpHeaders } from 'node:http'

/** Whether a request has a body. */
export function hasBody ({ 'transfer-encoding': encoding, 'content-length': length = '0' }: IncomingHttpHeaders): boolean {
  return encoding !== undefined || length !== '0'
}
