// Takes memory from guests that run, for a while, for the host. A request is kept in memory only: it ends with its time, with the VM, and with
// the server; the next one, and a VM's restore, begin with whole guests.
import { InvalidRequest } from '../../../core/errors/common.ts'
import { pause } from '../../../core/jobs/pause.ts'
import type { VmBalloon } from '../../../core/library/hypervisor.ts'
import { parseDuration } from '../../../core/units.ts'
import type { Context } from '../context.ts'
import { ReclaimUnsupported } from '../errors.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import { printable } from '../validate/env.ts'
import { isShort, memoryOfHost } from './host-memory.ts'
import { floorOf, targetsFor } from './plan.ts'
import type { MemoryReclaim, ReclaimMemory } from './schemas.ts'

const DEFAULT_HOLD_MS = 5 * 60_000
const MOST_HOLD_MS = 60 * 60_000
/** how long an answer waits until guests have followed */
const FOLLOW_MS = 10_000
const LOOK_MS = 50

type Action = MemoryReclaim['actions'][number]

interface Guest { readonly instance: LiveInstance, readonly session: GuestSession, readonly assignedBytes: number, readonly balloon: VmBalloon | undefined }

export interface Reclaim {
  /** @throws invalid_request, not_supported */
  run (body: ReclaimMemory): Promise<MemoryReclaim>
  /** At the start of the server: requests of an earlier server are over. */
  open (): void
  close (): Promise<void>
}

export function createReclaim (context: Context): Reclaim {
  const { instances, log, settings } = context
  /** the memory that guests were asked to do with, for those that were asked for less than all of theirs */
  const asked = new Map<GuestSession, number>()
  let holdUntil: number | undefined
  let timer: NodeJS.Timeout | undefined
  let turn: Promise<unknown> = Promise.resolve()

  function guests (): Guest[] {
    return instances.all().flatMap((instance) => {
      const { session, record: { spec } } = instance
      if (session?.vm.state.status !== 'running') return []
      const { balloon } = session.vm
      return [{ instance, session, balloon, assignedBytes: balloon?.wholeBytes ?? spec.memoryBytes + (spec.hotplugBytes ?? 0) }]
    })
  }

  async function apply (body: ReclaimMemory, holdMs: number): Promise<MemoryReclaim> {
    // Before any guest that runs is asked.
    if (body.dry_run !== true && body.reclaim_bytes > 0) await context.kept.endAll('pressure')
    const all = guests()
    for (const session of asked.keys()) if (!all.some((guest) => guest.session === session)) asked.delete(session)
    const able = all.filter(({ balloon }) => balloon !== undefined)
    const floors = new Map(able.map((guest) => [guest, floorOf(guest.assignedBytes, settings.reclaim)]))
    const targets = targetsFor(body.reclaim_bytes, able.map((guest) => ({ assignedBytes: guest.assignedBytes, floorBytes: floors.get(guest) ?? 0 })))
    const dry = body.dry_run === true
    const began = performance.now()
    const actions = await Promise.all(all.map(async (guest) => {
      const target = targets[able.indexOf(guest)] ?? guest.assignedBytes
      return await act(guest, floors.get(guest) ?? guest.assignedBytes, target, dry, began + FOLLOW_MS)
    }))
    const planned = able.reduce((sum, { assignedBytes }, index) => sum + assignedBytes - (targets[index] ?? assignedBytes), 0)
    if (!dry && planned > 0 && holdMs > 0) hold(holdMs)
    else if (!dry) await giveBack()
    const memory = await memoryOfHost()
    const answer: MemoryReclaim = {
      requested_reclaim_bytes: body.reclaim_bytes,
      planned_reclaim_bytes: planned,
      applied_reclaim_bytes: actions.reduce((sum, { applied_reclaim_bytes: bytes }) => sum + bytes, 0),
      host_available_bytes: memory.availableBytes,
      host_pressure_state: isShort(memory) ? 'pressure' : 'healthy',
      ...(dry || holdUntil === undefined ? {} : { hold_until: new Date(holdUntil).toISOString() }),
      actions
    }
    if (!dry) log.info({ requested: answer.requested_reclaim_bytes, planned, applied: answer.applied_reclaim_bytes, reason: body.reason }, 'guests were asked for memory')
    return answer
  }

  async function act ({ instance, session, balloon, assignedBytes }: Guest, floorBytes: number, target: number, dry: boolean, deadline: number): Promise<Action> {
    const previous = asked.get(session) ?? assignedBytes
    const action = {
      instance_id: instance.id,
      instance_name: instance.name,
      hypervisor: instance.record.spec.hypervisor,
      assigned_memory_bytes: assignedBytes,
      protected_floor_bytes: floorBytes,
      previous_target_guest_memory_bytes: previous,
      planned_target_guest_memory_bytes: target,
      target_guest_memory_bytes: dry ? previous : target,
      applied_reclaim_bytes: 0
    }
    if (balloon === undefined) return { ...action, status: 'unsupported', error: 'its VM has no balloon: the hypervisor has none, it has devices of the host, or its memory is of before there were balloons' }
    try {
      if (dry) return { ...action, status: target < assignedBytes ? 'planned' : 'unchanged', applied_reclaim_bytes: assignedBytes - Math.min(assignedBytes, await balloon.bytes()) }
      if (target === assignedBytes) asked.delete(session)
      else asked.set(session, target)
      if (target !== previous) await balloon.aim(target)
      const bytes = await followed(balloon, target, deadline)
      const applied = assignedBytes - Math.min(assignedBytes, bytes)
      if (target === assignedBytes && previous === assignedBytes) return { ...action, status: 'unchanged', applied_reclaim_bytes: applied }
      return { ...action, status: isThere(bytes, target, assignedBytes) ? 'applied' : 'partial', applied_reclaim_bytes: applied }
    } catch (error) {
      log.warn({ err: error, instance: instance.id }, 'a guest could not be asked for memory')
      return { ...action, status: 'error', error: 'its VMM did not answer; the log of the server says why' }
    }
  }

  /** Returns the memory of the guest once it has followed, or when the time is over. */
  async function followed (balloon: VmBalloon, target: number, deadline: number): Promise<number> {
    for (;;) {
      const bytes = await balloon.bytes()
      if (isThere(bytes, target, balloon.wholeBytes) || performance.now() >= deadline || context.closing.signal.aborted) return bytes
      await pause(LOOK_MS, context.closing.signal)
    }
  }

  function hold (ms: number): void {
    clearTimeout(timer)
    holdUntil = Date.now() + ms
    timer = setTimeout(() => { inTurn(giveBack).catch((error: unknown) => { log.error({ err: error }, 'guests could not be given their memory back') }) }, ms).unref()
  }

  async function giveBack (): Promise<void> {
    clearTimeout(timer)
    holdUntil = undefined
    const machines = [...asked.keys()]
    asked.clear()
    await Promise.all(machines.map(async ({ vm }) => { await makeWhole(vm.balloon) }))
  }

  /** For a VM that has ended meanwhile there is nothing to do. */
  async function makeWhole (balloon: VmBalloon | undefined): Promise<void> {
    await balloon?.aim(balloon.wholeBytes).catch((error: unknown) => { log.debug({ err: error }, 'a guest could not be given its memory back') })
  }

  function inTurn<T> (work: () => Promise<T>): Promise<T> {
    const done = turn.then(work)
    turn = done.catch(() => {})
    return done
  }

  return {
    async run (body) {
      const holdMs = holdOf(body)
      if (![...context.hypervisors.values()].some(({ features }) => features?.includes('balloon-control') === true)) throw ReclaimUnsupported()
      return await inTurn(async () => await apply(body, holdMs))
    },
    open () {
      inTurn(async () => { await Promise.all(guests().map(async ({ balloon }) => { await makeWhole(balloon) })) }).catch((error: unknown) => { log.error({ err: error }, 'guests could not be given their memory back') })
    },
    async close () {
      clearTimeout(timer)
      await inTurn(giveBack)
    }
  }
}

/** @throws invalid_request */
function holdOf ({ hold_for: text }: ReclaimMemory): number {
  if (text === undefined) return DEFAULT_HOLD_MS
  const ms = parseDuration(text)
  if (ms === undefined) throw InvalidRequest(`hold_for: "${printable(text)}" is not a duration such as 30s or 5m`)
  if (ms > MOST_HOLD_MS) throw InvalidRequest('hold_for: must be at most 1h')
  return ms
}

/** Whether a guest has reached its target. A guest gives back whole pages, and must get everything when it is asked for nothing. */
function isThere (bytes: number, target: number, wholeBytes: number): boolean {
  return target === wholeBytes ? bytes >= target : bytes <= target
}
