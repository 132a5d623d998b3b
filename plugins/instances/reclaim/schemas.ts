// The shapes of a reclaim of memory and its answer.
import { Type, type Static } from 'typebox'
import { oneOf } from '../../../core/http/schemas.ts'

const closed = { additionalProperties: false } as const
const Bytes = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })

export const ReclaimMemory = Type.Object({
  reclaim_bytes: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description: 'What all guests together are to do without, in place of what an earlier request asked for; 0: they get everything again' }),
  dry_run: Type.Optional(Type.Boolean({ description: 'Says what would be asked of whom, and changes nothing' })),
  hold_for: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'Go duration, 5m when absent, at most 1h; then the guests get everything again' })),
  reason: Type.Optional(Type.String({ maxLength: 256, description: 'For the log' }))
}, { ...closed, $id: 'ReclaimMemory' })
export type ReclaimMemory = Static<typeof ReclaimMemory>

export const MemoryReclaim = Type.Object({
  requested_reclaim_bytes: Bytes,
  planned_reclaim_bytes: Type.Integer({ minimum: 0, description: 'What the guests can be asked for' }),
  applied_reclaim_bytes: Type.Integer({ minimum: 0, description: 'What they have given up, as their VMMs measure it' }),
  host_available_bytes: Bytes,
  host_pressure_state: oneOf(['healthy', 'pressure'], { description: 'pressure: less than a tenth of the host\'s memory is available' }),
  hold_until: Type.Optional(Type.String({ format: 'date-time' })),
  actions: Type.Array(Type.Object({
    instance_id: Type.String(),
    instance_name: Type.String(),
    hypervisor: Type.String(),
    status: oneOf(['applied', 'partial', 'planned', 'unchanged', 'unsupported', 'error'], { description: 'partial: the guest has not given up all of it in time, and may go on; unchanged: nothing is asked of it' }),
    error: Type.Optional(Type.String()),
    assigned_memory_bytes: Bytes,
    protected_floor_bytes: Type.Integer({ minimum: 0, description: 'Less is not left to it' }),
    previous_target_guest_memory_bytes: Bytes,
    planned_target_guest_memory_bytes: Bytes,
    target_guest_memory_bytes: Bytes,
    applied_reclaim_bytes: Bytes
  }, closed), { description: 'One for each VM that runs' })
}, { ...closed, $id: 'MemoryReclaim' })
export type MemoryReclaim = Static<typeof MemoryReclaim>
