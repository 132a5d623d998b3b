// Wakes instances for callers: each instance once for all who wait for it.
import type { Jobs } from '../../../core/contracts/services.ts'
import { NotFound } from '../../../core/errors/common.ts'
import { BerthError } from '../../../core/errors/define.ts'
import { within } from '../../../core/jobs/deadline.ts'
import { unlessAborted } from '../../../core/jobs/unless-aborted.ts'
import { pathsIn, type Context } from '../context.ts'
import type { InstanceWaking, Woken } from '../contract.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { logged } from '../folder/operations-log.ts'
import { restore } from '../operations/restore.ts'
import { start } from '../operations/start.ts'
import { awaitEnd } from './await-end.ts'
import { awaitRunning } from './await-running.ts'
import { CannotBeWoken, TooManyWaiting, WakeTimedOut } from './errors.ts'
import { Line } from './line.ts'
import { Listening } from './listening.ts'
import { Turns } from '../../../core/jobs/turns.ts'

/** how long a failure is the answer to everybody: otherwise calls that come one after the other would be as many failing restores */
const FAILURE_HOLDS_MS = 2000

interface Flight {
  waiting: number
  readonly line: Line
  readonly done: Promise<void>
}

interface Failure {
  readonly error: unknown
  /** version of the instance after the failure */
  readonly version: number
}

export function createWaking (context: Context, jobs: Jobs): InstanceWaking {
  const { instances, locks, settings: { waking } } = context
  const queue = jobs.queue('waking', { concurrency: waking.concurrency })
  const turns = new Turns(waking.concurrency)
  const callers = new Map<string, number>()
  let all = 0
  const listening = new Listening(context)
  const flights = new Map<string, Flight>()
  const failures = new Map<string, Failure>()

  const remember = ({ id, record: { version } }: LiveInstance, error: unknown): void => {
    const failure = { error, version }
    failures.set(id, failure)
    setTimeout(() => { if (failures.get(id) === failure) failures.delete(id) }, FAILURE_HOLDS_MS).unref()
  }

  /** Waits for a turn, and for other work on the instance, and then wakes it. */
  const wakeInTurn = async (instance: LiveInstance, line: Line, signal: AbortSignal): Promise<void> => {
    const { id } = instance
    for (;;) {
      const turn = line.ask()
      try {
        await unlessAborted(signal, turn.begun)
        // The queue has room by then, and the end of the server waits for it.
        if (!locks.isUsed(id)) return await queue.push(id, async () => { await locks.hold(id, async () => { await rouse(context, instance, signal) }, signal) })
      } finally {
        turn.end()
      }
      // Other work may take its time, so it is waited for without a turn; and a turn without the lock, since others may want to stop or delete the instance meanwhile.
      await locks.hold(id, async () => {}, signal)
    }
  }

  const fly = async (instance: LiveInstance, line: Line): Promise<void> => {
    await within(waking.timeoutMs, [context.closing.signal], async (signal) => {
      const work = async (): Promise<void> => {
        if (isToBeWoken(instance)) await wakeInTurn(instance, line, signal)
        await awaitRunning(context, instance, waking.timeoutMs)
      }
      await unlessAborted(signal, work()).catch((error: unknown) => {
        if (context.closing.signal.aborted) throw CannotBeWoken.from(error, instance.name, 'the server is ending')
        throw signal.aborted ? WakeTimedOut.from(error, instance.name, Math.round(waking.timeoutMs / 1000)) : error
      })
    })
    listening.woken(instance)
  }

  const begin = (instance: LiveInstance, caller: string): Flight => {
    const { id } = instance
    const line = new Line(turns, caller)
    const done = fly(instance, line).catch((error: unknown) => {
      const named = reasonOf(context, instance, error)
      remember(instance, named)
      throw named
    }).finally(() => { flights.delete(id) })
    // All of its callers may have gone.
    done.catch(() => {})
    const flight = { waiting: 0, line, done }
    flights.set(id, flight)
    return flight
  }

  /** @throws too_many_waiting. @returns the function that gives the place back */
  const admit = ({ name }: LiveInstance, flight: Flight | undefined, caller: string): () => void => {
    const own = callers.get(caller) ?? 0
    if ((flight?.waiting ?? 0) >= waking.maxWaiting) throw TooManyWaiting(`instance ${name} is being woken, and ${waking.maxWaiting} callers wait for that already`)
    if (own >= waking.maxWaitingPerClient) throw TooManyWaiting(`${waking.maxWaitingPerClient} requests of the same client wait for instances to be awake already`)
    if (all >= waking.maxWaitingInAll) throw TooManyWaiting(`${waking.maxWaitingInAll} callers wait for instances to be awake already`)
    callers.set(caller, own + 1)
    all++
    return () => {
      const left = (callers.get(caller) ?? 1) - 1
      if (left === 0) callers.delete(caller)
      else callers.set(caller, left)
      all--
    }
  }

  const listeningAt = async (instance: LiveInstance, port: number | undefined, signal: AbortSignal): Promise<Woken> => {
    if (port !== undefined) await listening.wait(instance, port, signal)
    return wokenOf(context, instance)
  }

  return {
    async wake (id, { signal, caller, port }) {
      signal.throwIfAborted()
      const instance = instances.get(id)
      // An instance that is about to go to standby is still Running. Whatever else is done to it is none of a caller's affair.
      if (instance.state === 'Running' && !instance.isLeaving) return await listeningAt(instance, port, signal)
      requireWakeable(instance)
      const failure = failures.get(id)
      if (failure !== undefined && failure.version === instance.record.version) throw failure.error
      const leave = admit(instance, flights.get(id), caller)
      const flight = flights.get(id) ?? begin(instance, caller)
      flight.line.joinedBy(caller)
      flight.waiting++
      try {
        await unlessAborted(signal, flight.done)
      } finally {
        flight.waiting--
        leave()
      }
      return await listeningAt(instance, port, signal)
    }
  }
}

/** Otherwise it runs, or will in a moment. */
function isToBeWoken ({ state, isLeaving }: LiveInstance): boolean {
  return isLeaving || state === 'Standby' || state === 'Stopped' || state === 'Shutdown'
}

/** Needs the lock of the instance. */
async function rouse (context: Context, instance: LiveInstance, signal: AbortSignal): Promise<void> {
  await awaitEnd(instance, signal)
  if (instance.deleted) throw NotFound('instance', instance.id)
  requireWakeable(instance)
  const { state } = instance
  if (state !== 'Standby' && state !== 'Stopped') return
  await logged(pathsIn(context, instance.id).operations, `wake from ${state}`, context.log, async () => {
    if (state === 'Standby') await context.metrics.timed('restore', async () => { await restore(context, instance) })
    else await context.metrics.timed('start', async () => { await start(context, instance, {}) })
  })
}

/** @throws CannotBeWoken when waiting would be of no use */
function requireWakeable ({ name, state, derived, record: { spec, status } }: LiveInstance): void {
  const { wake = 'standby', worker } = spec
  if (worker !== undefined) throw CannotBeWoken(name, `it works for the plugin ${worker}`)
  if (status === 'deleting') throw CannotBeWoken(name, 'it is being deleted')
  if (state === 'Unknown') throw CannotBeWoken(name, `its state is Unknown: ${derived.error ?? ''}`)
  if (state === 'Standby' && wake === 'never') throw CannotBeWoken(name, 'it is in Standby, and its wake is never')
  if (state === 'Stopped' && wake !== 'always') throw CannotBeWoken(name, `it is Stopped, and its wake is ${wake}, not always`)
}

/** The error for callers, who are often strangers. */
function reasonOf (context: Context, instance: LiveInstance, error: unknown): unknown {
  if (error instanceof BerthError && error.kind !== 'internal') {
    return error.kind === 'unavailable' || error.kind === 'not-found' ? error : CannotBeWoken.from(error, instance.name, error.message)
  }
  context.log.error({ err: error, instance: instance.id }, 'an instance could not be woken')
  return CannotBeWoken.from(error, instance.name, 'the server failed at it; its log has the cause')
}

function wokenOf (context: Context, instance: LiveInstance): Woken {
  return { address: context.network?.addressOf(instance.id)?.ip }
}
