// Keeps a process running: when it ends or hangs it is started again, at once the first time, then after pauses that grow while it keeps failing.
import { pause } from '../jobs/pause.ts'
import type { Logger } from '../contracts/services.ts'
import { TrackedProcess, type Tracking } from './register.ts'

const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 10_000
/** A process that ran this long was healthy: after the next failure the pauses begin short again. */
const HEALTHY_MS = 30_000

export interface Supervised {
  /** its name in the log: `the registry store` */
  readonly name: string
  readonly log: Logger
  /** how the register knows it */
  readonly tracking: Tracking
  /** Resolves with the problem, once there is one: `has ended`, `does not answer`; undefined when the signal aborts. */
  untilWrong (signal: AbortSignal): Promise<string | undefined>
  /** Ends the rest of the old process, and starts a new one. */
  start (signal: AbortSignal): Promise<void>
  /** Text for the log: what it printed last. */
  said? (): string
}

/** @returns when the signal aborts; the process is then left as it is */
export async function supervise (supervised: Supervised, signal: AbortSignal): Promise<void> {
  const track = new TrackedProcess(supervised.tracking)
  try {
    await keepRunning(supervised, track, signal)
  } finally {
    track.leave()
  }
}

async function keepRunning ({ name, log, untilWrong, start, said }: Supervised, track: TrackedProcess, signal: AbortSignal): Promise<void> {
  let pauseMs = FIRST_PAUSE_MS
  while (!signal.aborted) {
    const since = performance.now()
    const wrong = await untilWrong(signal)
    if (wrong === undefined || signal.aborted) return
    if (performance.now() - since > HEALTHY_MS) pauseMs = FIRST_PAUSE_MS
    track.ended(wrong)
    log.error({ pauseMs, ...said === undefined ? {} : { said: said() } }, `${name} ${wrong}; it is started again`)
    for (let isUp = false; !isUp;) {
      await pause(pauseMs, signal)
      if (signal.aborted) return
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
      isUp = await starts(name, log, start, signal)
      if (isUp) track.started()
    }
  }
}

async function starts (name: string, log: Logger, start: Supervised['start'], signal: AbortSignal): Promise<boolean> {
  try {
    await start(signal)
    return true
  } catch (error) {
    if (!signal.aborted) log.error({ err: error }, `${name} could not be started`)
    return false
  }
}
