// How a health check is asked for and shown.
import { Type } from 'typebox'
import { nullable, oneOf, Timestamp } from '../../../core/http/schemas.ts'
import { DurationText, timeView } from '../life/schemas.ts'
import type { Health, HealthCheck } from './check.ts'

const closed = { additionalProperties: false } as const
const Port = Type.Integer({ minimum: 1, maximum: 65535, description: 'Of the guest, at its address or its loopback; no network is needed' })
const Threshold = (description: string) => Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description }))

export const HealthCheckSchema = Type.Object({
  type: Type.Optional(oneOf(['none', 'exec', 'http', 'tcp'], { description: 'none when absent: nothing is checked' })),
  interval: DurationText('Go duration from the end of a probe to the next one, at least 1s; 10s when absent'),
  timeout: DurationText('Go duration after which a probe has failed; 2s when absent'),
  start_period: DurationText('Go duration in which failures make nothing unhealthy, from the start of the program or its waking; 30s when absent'),
  failure_threshold: Threshold('Failed probes, one after the other, that make it unhealthy; 3 when absent'),
  success_threshold: Threshold('Successful ones that make it healthy; 1 when absent'),
  exec: Type.Optional(Type.Object({
    command: Type.Array(Type.String({ maxLength: 4096, pattern: '^[^\\u0000]*$' }), { minItems: 1, maxItems: 64, description: 'Run in the guest as root, with the environment of the program; 0 is success. What it prints is not read: with more than 256 KiB it waits until its time is over' }),
    working_dir: Type.Optional(Type.String({ minLength: 1, maxLength: 4096, pattern: '^/[^\\u0000]*$', description: '/ when absent' }))
  }, closed)),
  http: Type.Optional(Type.Object({
    port: Port,
    path: Type.Optional(Type.String({ maxLength: 2048, pattern: '^/[\\x21-\\x7e]*$', description: '/ when absent' })),
    scheme: Type.Optional(oneOf(['http', 'https'], { description: 'http when absent; no certificate is checked' })),
    expected_status: Type.Optional(Type.Integer({ minimum: 200, maximum: 599, description: 'Of the answer to GET; any of 200 to 399 when absent. Redirects are not followed' }))
  }, closed)),
  tcp: Type.Optional(Type.Object({ port: Port }, closed))
}, { ...closed, description: 'Whether the program does what it is for; with a restart policy, an unhealthy instance is started again' })

export const HealthStatus = Type.Object({
  status: oneOf(['disabled', 'unknown', 'starting', 'healthy', 'unhealthy'], { description: 'unknown: not probed yet, or not running' }),
  consecutive_failures: Type.Integer(),
  consecutive_successes: Type.Integer(),
  last_checked_at: nullable(Timestamp),
  last_success_at: nullable(Timestamp),
  last_failure_at: nullable(Timestamp),
  last_error: nullable(Type.String())
}, closed)

const duration = (ms: number): string => ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`

/** The fields of an instance's answer. */
export function healthView (check: HealthCheck | undefined, health: Health | undefined) {
  if (check === undefined) return {}
  return {
    health_check: {
      type: check.type,
      interval: duration(check.intervalMs),
      timeout: duration(check.timeoutMs),
      start_period: duration(check.startPeriodMs),
      failure_threshold: check.failureThreshold,
      success_threshold: check.successThreshold,
      ...detailsView(check)
    },
    health_status: {
      status: health?.status ?? 'unknown' as const,
      consecutive_failures: health?.failures ?? 0,
      consecutive_successes: health?.successes ?? 0,
      last_checked_at: timeView(health?.lastCheckedAt),
      last_success_at: timeView(health?.lastSuccessAt),
      last_failure_at: timeView(health?.lastFailureAt),
      last_error: health?.lastError ?? null
    }
  }
}

function detailsView (check: HealthCheck) {
  switch (check.type) {
    case 'exec': return { exec: { command: [...check.command], ...(check.workingDir === undefined ? {} : { working_dir: check.workingDir }) } }
    case 'tcp': return { tcp: { port: check.port } }
    case 'http': return { http: { port: check.port, path: check.path, scheme: check.scheme, ...(check.expectedStatus === undefined ? {} : { expected_status: check.expectedStatus }) } }
  }
}
