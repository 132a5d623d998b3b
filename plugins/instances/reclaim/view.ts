// A reclaim of memory as the API reads and shows it.
import { InvalidRequest } from '../../../core/errors/common.ts'
import { parseDuration } from '../../../core/units.ts'
import { printable } from '../validate/env.ts'
import type { Reclaimed, ReclaimedOf, ReclaimRequest } from './request.ts'
import type { MemoryReclaim, ReclaimMemory } from './schemas.ts'

const DEFAULT_HOLD_MS = 5 * 60_000
const MOST_HOLD_MS = 60 * 60_000

/** @throws invalid_request */
export function reclaimRequest (body: ReclaimMemory): ReclaimRequest {
  return { reclaimBytes: body.reclaim_bytes, isDry: body.dry_run === true, holdMs: holdOf(body), reason: body.reason }
}

function holdOf ({ hold_for: text }: ReclaimMemory): number {
  if (text === undefined) return DEFAULT_HOLD_MS
  const ms = parseDuration(text)
  if (ms === undefined) throw InvalidRequest(`hold_for: "${printable(text)}" is not a duration such as 30s or 5m`)
  if (ms > MOST_HOLD_MS) throw InvalidRequest('hold_for: must be at most 1h')
  return ms
}

export function reclaimView ({ requestedBytes, plannedBytes, appliedBytes, availableBytes, isHostShort, holdUntil, actions }: Reclaimed): MemoryReclaim {
  return {
    requested_reclaim_bytes: requestedBytes,
    planned_reclaim_bytes: plannedBytes,
    applied_reclaim_bytes: appliedBytes,
    host_available_bytes: availableBytes,
    host_pressure_state: isHostShort ? 'pressure' : 'healthy',
    ...(holdUntil === undefined ? {} : { hold_until: new Date(holdUntil).toISOString() }),
    actions: actions.map(actionView)
  }
}

function actionView ({ instanceId, instanceName, hypervisor, status, error, assignedBytes, floorBytes, previousTarget, plannedTarget, target, appliedBytes }: ReclaimedOf): MemoryReclaim['actions'][number] {
  return {
    instance_id: instanceId,
    instance_name: instanceName,
    hypervisor,
    status,
    ...(error === undefined ? {} : { error }),
    assigned_memory_bytes: assignedBytes,
    protected_floor_bytes: floorBytes,
    previous_target_guest_memory_bytes: previousTarget,
    planned_target_guest_memory_bytes: plannedTarget,
    target_guest_memory_bytes: target,
    applied_reclaim_bytes: appliedBytes
  }
}
