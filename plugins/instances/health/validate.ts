// Rules of `health_check`.
import type { Static } from 'typebox'
import { parseDuration } from '../../../core/units.ts'
import { InvalidHealthCheck } from '../errors.ts'
import { printable } from '../validate/env.ts'
import type { CommandCheck, HealthCheck, HttpCheck } from './check.ts'
import type { HealthCheckSchema } from './schemas.ts'

type Asked = Static<typeof HealthCheckSchema>

const HOUR_MS = 3_600_000
const MINUTE_MS = 60_000

/** The check with the defaults filled in; `undefined`: nothing is checked. @param skipGuestAgent whether the guest has no agent that could run or call anything @throws invalid_health_check */
export function checkHealthCheck (asked: Asked | undefined, skipGuestAgent: boolean): HealthCheck | undefined {
  const { type = 'none' } = asked ?? {}
  if (asked === undefined || type === 'none') return undefined
  if (skipGuestAgent) throw InvalidHealthCheck('health_check.type', `${type} needs the guest agent, and the instance is without it (skip_guest_agent)`)
  const pace = {
    intervalMs: durationOf('interval', asked.interval ?? '10s', 1000, 24 * HOUR_MS, '1s to 24h'),
    timeoutMs: durationOf('timeout', asked.timeout ?? '2s', 100, 5 * MINUTE_MS, '100ms to 5m'),
    startPeriodMs: durationOf('start_period', asked.start_period ?? '30s', 0, 24 * HOUR_MS, 'at most 24h'),
    failureThreshold: asked.failure_threshold ?? 3,
    successThreshold: asked.success_threshold ?? 1
  }
  if (type === 'tcp') return { type, port: given(type, asked.tcp).port, ...pace }
  return type === 'exec' ? { ...commandOf(given(type, asked.exec)), ...pace } : { ...requestOf(given(type, asked.http)), ...pace }
}

function given<T> (type: string, details: T | undefined): T {
  if (details === undefined) throw InvalidHealthCheck(`health_check.${type}`, `is needed with type ${type}`)
  return details
}

function commandOf ({ command, working_dir: workingDir }: NonNullable<Asked['exec']>): Pick<CommandCheck, 'type' | 'command' | 'workingDir'> {
  if (command[0] === '') throw InvalidHealthCheck('health_check.exec.command.0', 'must not be empty')
  return { type: 'exec', command, ...(workingDir === undefined ? {} : { workingDir }) }
}

function requestOf ({ port, path = '/', scheme = 'http', expected_status: expectedStatus }: NonNullable<Asked['http']>): Pick<HttpCheck, 'type' | 'port' | 'path' | 'scheme' | 'expectedStatus'> {
  return { type: 'http', port, path, scheme, ...(expectedStatus === undefined ? {} : { expectedStatus }) }
}

function durationOf (field: string, text: string, leastMs: number, mostMs: number, rule: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw InvalidHealthCheck(`health_check.${field}`, `"${printable(text)}" is not a duration such as 2s or 1m`)
  if (ms < leastMs || ms > mostMs) throw InvalidHealthCheck(`health_check.${field}`, `must be ${rule}`)
  return Math.round(ms)
}
