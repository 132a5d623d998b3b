// Why a delivery failed, for users of the webhook. It contains neither text of the receiver nor an address that its name resolves to.
import { AddressRefused } from '../../../core/library/addresses.ts'

const TEXTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'it refused the connection',
  ECONNRESET: 'it closed the connection without an answer',
  EPIPE: 'it closed the connection without an answer',
  ETIMEDOUT: 'it could not be reached in time',
  EHOSTUNREACH: 'it cannot be reached',
  ENETUNREACH: 'it cannot be reached',
  ENOTFOUND: 'its name cannot be found',
  EPROTO: 'it does not speak TLS'
}

export function failureText (error: unknown): string {
  if (error instanceof AddressRefused) return error.message
  if (!(error instanceof Error)) return 'the delivery failed'
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  const known = TEXTS[code]
  if (known !== undefined) return known
  if (code.startsWith('HPE_')) return 'its answer is no HTTP'
  if (code.includes('CERT') || code.includes('SELF_SIGNED') || code.startsWith('UNABLE_TO')) return `its certificate is not trusted (${code})`
  if (code.startsWith('ERR_SSL') || code.startsWith('ERR_TLS')) return `TLS failed (${code})`
  return code === '' ? 'its name cannot be found' : `the connection failed (${code})`
}
