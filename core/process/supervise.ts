// Keeps a process going: one that has ended or hangs is started again, at once the first time, and with pauses that grow while it does not last.
import { pause } from '../jobs/pause.ts'
import type { Logger } from '../contracts/services.ts'

const FIRST_PAUSE_MS = 20
const LONGEST_PAUSE_MS = 10_000
/** One that ran this long was healthy: the next failure starts with a short pause again. */
const HEALTHY_MS = 30_000

export interface Supervised {
  /** what it is called in the log: `the registry store` */
  readonly name: string
  readonly log: Logger
  /** Resolves with what is wrong, once something is: `has ended`, `does not answer`; undefined when the signal aborts. */
  untilWrong (signal: AbortSignal): Promise<string | undefined>
  /** Ends what is left of it, and starts it. */
  start (signal: AbortSignal): Promise<void>
  /** A word for the log: what it printed last. */
  said? (): string
}

/** @returns when the signal aborts; the process is left as it is then */
export async function supervise ({ name, log, untilWrong, start, said }: Supervised, signal: AbortSignal): Promise<void> {
  let pauseMs = FIRST_PAUSE_MS
  while (!signal.aborted) {
    const since = performance.now()
    const wrong = await untilWrong(signal)
    if (wrong === undefined || signal.aborted) return
    if (performance.now() - since > HEALTHY_MS) pauseMs = FIRST_PAUSE_MS
    log.error({ pauseMs, ...said === undefined ? {} : { said: said() } }, `${name} ${wrong}; it is started again`)
    for (let isUp = false; !isUp;) {
      await pause(pauseMs, signal)
      if (signal.aborted) return
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)
      isUp = await starts(name, log, start, signal)
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
