// The status of auto-standby as the API shows it, and the hold that a caller can ask for.
import { timeView } from '../life/schemas.ts'
import { hostClock, momentIn } from '../life/moment.ts'
import type { Context } from '../context.ts'
import { InstanceInStandby } from '../errors.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { durationText, type AutoStandbyReason, type AutoStandbyStatus } from './schemas.ts'
import { holdMs, ineligible, type IdleWatch, type Watched } from './watch.ts'

export async function autoStandbyStatus (context: Context, idle: IdleWatch, instance: LiveInstance): Promise<AutoStandbyStatus> {
  await idle.look()
  const policy = instance.record.spec.autoStandby
  const against = ineligible(context, instance)
  const entry = against === undefined ? idle.watched(instance.id) : undefined
  const held = holdMs(instance)
  const left = entry === undefined || policy === undefined ? Infinity : Math.max(entry.idleness.msLeft(policy.idleTimeoutMs, performance.now()), held)
  const counts = Number.isFinite(left)
  return {
    supported: against !== 'unsupported_platform',
    configured: policy !== undefined,
    enabled: policy?.enabled ?? false,
    eligible: against === undefined,
    ...verdict(against, entry, left),
    active_inbound_connections: entry?.idleness.connections ?? 0,
    kept_awake_by: [...entry?.idleness.leases ?? []],
    tracking_mode: against === 'unsupported_platform' ? 'none' : 'conntrack',
    idle_timeout: policy === undefined || policy.idleTimeoutMs === 0 ? null : durationText(policy.idleTimeoutMs),
    idle_since: timeOf(entry?.idleness.idleSince),
    last_inbound_activity_at: timeOf(entry?.idleness.activeAt),
    next_standby_at: counts ? timeView(Math.round(Date.now() + left)) : null,
    countdown_remaining: counts ? durationText(Math.ceil(left)) : null,
    hold_until: held > 0 ? timeView(Math.round(Date.now() + held)) : null
  }
}

function verdict (against: AutoStandbyReason | undefined, entry: Watched | undefined, left: number): Pick<AutoStandbyStatus, 'status' | 'reason'> {
  if (against === 'unsupported_platform') return { status: 'unsupported', reason: against }
  if (against === 'policy_missing' || against === 'policy_disabled') return { status: 'disabled', reason: against }
  if (against !== undefined) return { status: 'ineligible', reason: against }
  if (entry === undefined || entry.problem !== undefined) return { status: 'error', reason: 'observer_error' }
  if (entry.going !== undefined) return { status: 'standby_requested', reason: 'ready_for_standby' }
  if (entry.idleness.idleSince === undefined) return { status: 'active', reason: 'active_inbound_connections' }
  return left > 0 ? { status: 'idle_countdown', reason: 'idle_timeout_not_elapsed' } : { status: 'ready_for_standby', reason: 'ready_for_standby' }
}

/** @param at of `performance.now()` */
function timeOf (at: number | undefined): string | null {
  return at === undefined ? null : timeView(Math.round(Date.now() + at - performance.now()))
}

/** Needs the lock of the instance, so a standby that was under way is done by then, or taken back. @throws instance_in_standby */
export async function holdAwake (instance: LiveInstance): Promise<void> {
  const policy = instance.record.spec.autoStandby
  if (instance.state === 'Standby') throw InstanceInStandby(instance.name)
  if (policy?.enabled !== true) return
  await instance.save(({ life }) => ({ life: { ...life, hold: momentIn(policy.idleTimeoutMs, hostClock) } }))
}
