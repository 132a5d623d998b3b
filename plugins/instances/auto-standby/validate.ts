// Rules of `auto_standby`.
import { isIP } from 'node:net'
import type { Static } from 'typebox'
import { parseDuration } from '../../../core/units.ts'
import { InvalidAutoStandby } from '../errors.ts'
import { printable } from '../validate/env.ts'
import type { AutoStandbyPolicy } from './policy.ts'
import type { AutoStandbySchema } from './schemas.ts'

const MOST_MS = 720 * 3_600_000

/** With the defaults filled in. @throws invalid_auto_standby */
export function checkAutoStandby (asked: Static<typeof AutoStandbySchema> | undefined): AutoStandbyPolicy | undefined {
  if (asked === undefined) return undefined
  const { enabled = false, idle_timeout: timeout, ignore_destination_ports: ignoredPorts = [], ignore_source_cidrs: ignoredSources = [] } = asked
  if (enabled && timeout === undefined) throw InvalidAutoStandby('auto_standby.idle_timeout', 'is needed when enabled')
  ignoredSources.forEach((cidr, index) => { checkCidr(`auto_standby.ignore_source_cidrs.${index}`, cidr) })
  return { enabled, idleTimeoutMs: timeout === undefined ? 0 : checkTimeout(timeout), ignoredPorts, ignoredSources }
}

function checkTimeout (text: string): number {
  const ms = parseDuration(text)
  if (ms === undefined) throw InvalidAutoStandby('auto_standby.idle_timeout', `"${printable(text)}" is not a duration such as 30s or 10m`)
  if (ms < 1000 || ms > MOST_MS) throw InvalidAutoStandby('auto_standby.idle_timeout', 'must be 1s to 720h')
  return Math.round(ms)
}

function checkCidr (place: string, text: string): void {
  const [address = '', prefix = '', ...more] = text.split('/')
  const version = isIP(address)
  const isCidr = more.length === 0 && version !== 0 && /^\d{1,3}$/.test(prefix) && Number(prefix) <= (version === 4 ? 32 : 128)
  if (!isCidr) throw InvalidAutoStandby(place, `"${printable(text)}" is no CIDR such as 10.0.0.0/8`)
}
