// How the log describes an error.
import { stdSerializers } from 'pino'

/**
 * Its type, message, stack and code, and those of its causes. Nothing else: a parse error of HTTP holds the received bytes,
 * keys among them, and pino's redaction cannot copy a Buffer.
 */
export function describedError (error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const { type, message, stack } = stdSerializers.err(error)
  const code = 'code' in error && (typeof error.code === 'string' || typeof error.code === 'number') ? { code: error.code } : {}
  const errors = error instanceof AggregateError ? { errors: error.errors.map(describedError) } : {}
  return { type, message, stack, ...code, ...errors }
}
