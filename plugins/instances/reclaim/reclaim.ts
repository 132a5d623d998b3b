// Takes memory from guests that run, for a while, for the host. A request is kept in memory only: it ends with its time, with the VM, and with
// the server; the next one, and a VM's restore, begin with whole guests.
import { pause } from '../../../core/jobs/pause.ts'
import type { VmBalloon } from '../../../core/library/hypervisor.ts'
import { memoryOfHost } from '../../../core/process/host-memory.ts'
import type { Context } from '../context.ts'
import { ReclaimUnsupported } from '../errors.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import { isShort } from './host-memory.ts'
import { floorOf, targetsFor } from './plan.ts'
import type { Reclaimed, ReclaimedOf, ReclaimRequest } from './request.ts'

/** how long an answer waits until guests have followed */
const FOLLOW_MS = 10_000
const LOOK_MS = 50

/** What is to be asked of one guest. */
interface Aim { readonly floorBytes: number, readonly target: number, readonly isDry: boolean, readonly deadline: number }

interface Guest { readonly instance: LiveInstance, readonly session: GuestSession, readonly assignedBytes: number, readonly balloon: VmBalloon | undefined }

export interface Reclaim {
  /** @throws not_supported */
  run (request: ReclaimRequest): Promise<Reclaimed>
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

  async function apply ({ reclaimBytes, isDry, holdMs, reason }: ReclaimRequest): Promise<Reclaimed> {
    // Before any guest that runs is asked.
    if (!isDry && reclaimBytes > 0) {
      while (await context.spares.giveUpOne());
      await context.kept.endAll('pressure')
    }
    const all = guests()
    for (const session of asked.keys()) if (!all.some((guest) => guest.session === session)) asked.delete(session)
    const able = all.filter(({ balloon }) => balloon !== undefined)
    const floors = new Map(able.map((guest) => [guest, floorOf(guest.assignedBytes, settings.reclaim)]))
    const targets = targetsFor(reclaimBytes, able.map((guest) => ({ assignedBytes: guest.assignedBytes, floorBytes: floors.get(guest) ?? 0 })))
    const began = performance.now()
    const actions = await Promise.all(all.map(async (guest) => {
      const target = targets[able.indexOf(guest)] ?? guest.assignedBytes
      return await act(guest, { floorBytes: floors.get(guest) ?? guest.assignedBytes, target, isDry, deadline: began + FOLLOW_MS })
    }))
    const planned = able.reduce((sum, { assignedBytes }, index) => sum + assignedBytes - (targets[index] ?? assignedBytes), 0)
    if (!isDry && planned > 0 && holdMs > 0) hold(holdMs)
    else if (!isDry) await giveBack()
    const memory = await memoryOfHost()
    const applied = actions.reduce((sum, { appliedBytes }) => sum + appliedBytes, 0)
    if (!isDry) log.info({ requested: reclaimBytes, planned, applied, reason }, 'guests were asked for memory')
    return { requestedBytes: reclaimBytes, plannedBytes: planned, appliedBytes: applied, availableBytes: memory.availableBytes, isHostShort: isShort(memory), holdUntil: isDry ? undefined : holdUntil, actions }
  }

  async function act ({ instance, session, balloon, assignedBytes }: Guest, { floorBytes, target, isDry, deadline }: Aim): Promise<ReclaimedOf> {
    const previous = asked.get(session) ?? assignedBytes
    const action = {
      instanceId: instance.id,
      instanceName: instance.name,
      hypervisor: instance.record.spec.hypervisor,
      assignedBytes,
      floorBytes,
      previousTarget: previous,
      plannedTarget: target,
      target: isDry ? previous : target,
      appliedBytes: 0
    }
    if (balloon === undefined) return { ...action, status: 'unsupported', error: 'its VM has no balloon: the hypervisor has none, it has devices of the host, or its memory is of before there were balloons' }
    try {
      if (isDry) return { ...action, status: target < assignedBytes ? 'planned' : 'unchanged', appliedBytes: assignedBytes - Math.min(assignedBytes, await balloon.bytes()) }
      if (target === assignedBytes) asked.delete(session)
      else asked.set(session, target)
      if (target !== previous) await balloon.aim(target)
      const bytes = await followed(balloon, target, deadline)
      const applied = assignedBytes - Math.min(assignedBytes, bytes)
      if (target === assignedBytes && previous === assignedBytes) return { ...action, status: 'unchanged', appliedBytes: applied }
      return { ...action, status: isThere(bytes, target, assignedBytes) ? 'applied' : 'partial', appliedBytes: applied }
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
    async run (request) {
      if (![...context.hypervisors.values()].some(({ features }) => features?.includes('balloon-control') === true)) throw ReclaimUnsupported()
      return await inTurn(async () => await apply(request))
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

/** Whether a guest has reached its target. A guest gives back whole pages, and must get everything when it is asked for nothing. */
function isThere (bytes: number, target: number, wholeBytes: number): boolean {
  return target === wholeBytes ? bytes >= target : bytes <= target
}
