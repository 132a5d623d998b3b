// How auto-standby is asked for and shown.
import { Type, type Static } from 'typebox'
import { nullable, oneOf, Timestamp } from '../../../core/http/schemas.ts'
import { DurationText } from '../life/schemas.ts'
import type { AutoStandbyPolicy } from './policy.ts'

const closed = { additionalProperties: false } as const

export const AutoStandbySchema = Type.Object({
  enabled: Type.Optional(Type.Boolean({ description: 'false when absent' })),
  idle_timeout: DurationText('Go duration without TCP connections into the instance after which it goes to standby, 1s to 720h; needed when enabled'),
  ignore_destination_ports: Type.Optional(Type.Array(Type.Integer({ minimum: 1, maximum: 65535 }), { maxItems: 64, description: 'Ports of the instance whose connections count for nothing' })),
  ignore_source_cidrs: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 64 }), { maxItems: 64, description: 'Callers whose connections count for nothing, as 10.0.0.0/8' }))
}, { ...closed, description: 'Whether the instance goes to standby by itself. It does not while a command, a copy or a followed log is open in it' })

const STATUSES = ['unsupported', 'disabled', 'ineligible', 'active', 'idle_countdown', 'ready_for_standby', 'standby_requested', 'error'] as const
const REASONS = ['unsupported_platform', 'policy_missing', 'policy_disabled', 'instance_not_running', 'network_disabled', 'missing_ip', 'has_vgpu', 'active_inbound_connections', 'idle_timeout_not_elapsed', 'observer_error', 'ready_for_standby'] as const

export const AutoStandbyStatus = Type.Object({
  supported: Type.Boolean({ description: 'Whether this server has networks whose connections could be seen' }),
  configured: Type.Boolean(),
  enabled: Type.Boolean(),
  eligible: Type.Boolean({ description: 'Whether it can go to standby by itself, now or later' }),
  status: oneOf(STATUSES),
  reason: oneOf(REASONS),
  active_inbound_connections: Type.Integer({ description: 'Open ones that count' }),
  kept_awake_by: Type.Array(Type.String(), { description: 'What else is open, as exec, cp, followed log; its status is then active, too' }),
  tracking_mode: Type.String(),
  idle_timeout: nullable(Type.String()),
  idle_since: nullable(Timestamp),
  last_inbound_activity_at: nullable(Timestamp),
  next_standby_at: nullable(Timestamp),
  countdown_remaining: nullable(Type.String()),
  hold_until: nullable(Timestamp)
}, { ...closed, $id: 'AutoStandbyStatus' })
export type AutoStandbyStatus = Static<typeof AutoStandbyStatus>
export type AutoStandbyReason = typeof REASONS[number]

export const durationText = (ms: number): string => ms % 1000 === 0 ? `${ms / 1000}s` : `${Math.round(ms)}ms`

/** The field of an instance's answer. */
export function autoStandbyView (policy: AutoStandbyPolicy | undefined) {
  if (policy === undefined) return {}
  return {
    auto_standby: {
      enabled: policy.enabled,
      ...(policy.idleTimeoutMs === 0 ? {} : { idle_timeout: durationText(policy.idleTimeoutMs) }),
      ...(policy.ignoredPorts.length === 0 ? {} : { ignore_destination_ports: [...policy.ignoredPorts] }),
      ...(policy.ignoredSources.length === 0 ? {} : { ignore_source_cidrs: [...policy.ignoredSources] })
    }
  }
}
