// The log: one JSON object per line, without secrets.
import { pino, stdTimeFunctions, type DestinationStream, type Logger } from 'pino'
import { currentSpan } from '../tracing/span.ts'
import { describedError } from './described-error.ts'
import type { KeptLog } from './recent.ts'

const SECRET_FIELDS = ['authorization', 'password', 'credentials', 'registry_token', 'apiKey', 'secret', 'token', 'env', 'cookie']
const REDACTED_PATHS = SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`, `*.*.*.${field}`])

export interface LogOptions {
  /** least important level that is written: `trace`, `debug`, `info`, `warn`, `error`, `fatal` or `silent` */
  readonly level: string
  /** standard output when absent */
  readonly destination?: DestinationStream
  /** keeps the newest lines */
  readonly recent?: KeptLog
}

/** Makes the `log` service. Values of fields with the names of secrets are replaced, up to three levels deep. */
export function createLog (options: LogOptions): Logger {
  const settings = {
    level: options.level,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    base: { pid: process.pid },
    mixin: traceOf,
    serializers: { err: describedError },
    redact: { paths: REDACTED_PATHS, censor: '***' }
  }
  const destination = options.destination ?? pino.destination()
  return pino(settings, options.recent?.before(destination) ?? destination)
}

/** The fields that connect a log line with the trace of its request. A new object for each line, since pino adds the line's own fields to it. */
function traceOf (): object {
  const span = currentSpan()
  return span === undefined ? {} : { trace_id: span.traceId }
}
