// Runs pushes in the order in which they came, with a limit on concurrent ones, and stores how each ended. Only this file keeps the lent credentials.
import type { ApiKeys, JobQueue, Logger } from '../../core/contracts/services.ts'
import { doUntilDone } from '../../core/jobs/until-done.ts'
import type { RegistryCredentials } from '../../core/library/oci/credentials.ts'
import type { Copier } from './copy.ts'
import { PushFailure } from './failures.ts'
import type { PushesMetrics } from './metrics.ts'
import type { PushRecord } from './record.ts'
import type { PushRepository } from './repository.ts'

export interface Runner {
  /** Appends a stored push to the queue. */
  add (push: PushRecord, credentials: RegistryCredentials | undefined): void
  /** 1 for the next to run; undefined when it is not waiting. */
  position (id: string): number | undefined
  /** The number of waiting pushes. */
  waiting (): number
  /** Ends running pushes. The next server decides whether to repeat them. */
  close (): Promise<void>
}

export interface RunnerParts {
  readonly log: Logger
  readonly repository: Pick<PushRepository, 'begin' | 'weigh' | 'finish' | 'forget'>
  readonly queue: JobQueue
  readonly copy: Copier
  readonly apiKeys: Pick<ApiKeys, 'current'>
  readonly metrics: PushesMetrics
  readonly keepFinished: number
}

export function createRunner (parts: RunnerParts): Runner {
  const { queue, log } = parts
  const underWay = new Map<string, Promise<void>>()
  return {
    add (push, credentials) {
      let ended = false
      const work = queue.push(push.id, async (signal) => {
        try {
          await run(parts, push, credentials, signal)
        } finally {
          ended = true
        }
      }).catch((error: unknown) => {
        // Without an end it left the queue because the server stops.
        if (ended) log.error({ err: error, push: push.id }, 'the end of a push could not be stored')
      }).finally(() => { underWay.delete(push.id) })
      underWay.set(push.id, work)
    },
    position: (id) => queue.position(id),
    waiting: () => [...underWay.keys()].filter((id) => queue.position(id) !== undefined).length,
    async close () {
      await queue.close()
      await Promise.all(underWay.values())
    }
  }
}

async function run (parts: RunnerParts, push: PushRecord, credentials: RegistryCredentials | undefined, signal: AbortSignal): Promise<void> {
  const { repository, metrics, copy, keepFinished } = parts
  const startedAt = performance.now()
  await stored(parts, push, signal, async () => { await repository.begin(push.id) })
  const failure = await failureOf(parts, push, async () => {
    await requireKey(parts, push, signal)
    await copy(push, { credentials, signal, weighed: async (weight) => { await stored(parts, push, signal, async () => { await repository.weigh(push.id, weight) }) } })
  })
  // The row stays as it is, and the next server decides.
  if (failure !== undefined && signal.aborted) return
  await stored(parts, push, signal, async () => { await repository.finish(push.id, Date.now(), failure) })
  metrics.ended(failure === undefined ? 'success' : 'failed', (performance.now() - startedAt) / 1000)
  await repository.forget(keepFinished)
}

/** Stores a change of a push, however long the database is away: nobody else would, and the push would seem to go on for ever. @throws when the server stops meanwhile */
async function stored ({ log }: RunnerParts, push: PushRecord, signal: AbortSignal, change: () => Promise<void>): Promise<void> {
  await doUntilDone(change, signal, (error) => { log.warn({ err: error, push: push.id }, 'the state of a push could not be stored yet; it is tried again') })
}

/** @throws PushFailure when the key that asked for the push has ended since */
async function requireKey ({ apiKeys, log }: RunnerParts, { id, keyId }: PushRecord, signal: AbortSignal): Promise<void> {
  if (keyId === null) return
  let holds = false
  await doUntilDone(async () => { holds = await apiKeys.current(keyId) !== undefined }, signal, (error) => {
    log.warn({ err: error, push: id }, 'whether the key of a push still holds could not be found out; it is tried again')
  })
  if (!holds) throw new PushFailure('login-refused', 'the key that asked for it has ended')
}

/** The failure for the caller; undefined when the push succeeded. */
async function failureOf ({ log }: RunnerParts, push: PushRecord, work: () => Promise<void>): Promise<string | undefined> {
  try {
    await work()
    return undefined
  } catch (error) {
    log.warn({ err: error, push: push.id }, 'an image could not be pushed')
    return error instanceof PushFailure ? error.message : 'the push failed; the log of the server says why'
  }
}
