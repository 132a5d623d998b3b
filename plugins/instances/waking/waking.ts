// Wakes instances for callers: each instance once for all who wait for it.
import type { Jobs } from '../../../core/contracts/services.ts'
import { NotFound } from '../../../core/errors/common.ts'
import { BerthError } from '../../../core/errors/define.ts'
import { unlessAborted } from '../../../core/jobs/unless-aborted.ts'
import { pathsIn, type Context } from '../context.ts'
import type { InstanceWaking, Woken } from '../contract.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { logged } from '../folder/operations-log.ts'
import { restore } from '../operations/restore.ts'
import { start } from '../operations/start.ts'
import { awaitRunning } from './await-running.ts'
import { CannotBeWoken, TooManyWaiting } from './errors.ts'
import { Listening } from './listening.ts'
import { Turns, type Turn } from '../../../core/jobs/turns.ts'

/** how long a failure is the answer to everybody: otherwise calls that come one after the other would be as many failing restores */
const FAILURE_HOLDS_MS = 2000

interface Flight {
  waiting: number
  readonly turn: Turn
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

  /** Waits for other work on the instance, and then wakes it. */
  const fly = async (instance: LiveInstance, turn: Turn): Promise<void> => {
    const { id } = instance
    try {
      await unlessAborted(context.closing.signal, turn.begun).catch((error: unknown) => { throw CannotBeWoken.from(error, instance.name, 'the server is ending') })
      // The queue has room by then, and the end of the server waits for it.
      await queue.push(id, async () => {
        await locks.hold(id, async () => { await rouse(context, instance) })
      })
    } finally {
      turn.end()
    }
    await awaitRunning(context, instance, waking.timeoutMs)
    listening.woken(instance)
  }

  const begin = (instance: LiveInstance, caller: string): Flight => {
    const { id } = instance
    const turn = turns.ask(caller)
    const done = fly(instance, turn).catch((error: unknown) => {
      const named = reasonOf(context, instance, error)
      remember(instance, named)
      throw named
    }).finally(() => { flights.delete(id) })
    // All of its callers may have gone.
    done.catch(() => {})
    const flight = { waiting: 0, turn, done }
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
      // Nobody may be at work on it: an instance that is about to go to standby is still Running.
      if (instance.state === 'Running' && !locks.isUsed(id)) return await listeningAt(instance, port, signal)
      requireWakeable(instance)
      const failure = failures.get(id)
      if (failure !== undefined && failure.version === instance.record.version) throw failure.error
      const leave = admit(instance, flights.get(id), caller)
      const flight = flights.get(id) ?? begin(instance, caller)
      flight.turn.joinedBy(caller)
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

/** Needs the lock of the instance. */
async function rouse (context: Context, instance: LiveInstance): Promise<void> {
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
