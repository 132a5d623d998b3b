// Waits until a process that was started accepts connections.
import { setTimeout as sleep } from 'node:timers/promises'

const PAUSE_MS = 10

export interface AnswerWait {
  answers (): Promise<boolean>
  /** whether the process still runs, so that waiting makes sense */
  isThere (): boolean
  readonly withinMs: number
  readonly signal: AbortSignal
}

/** How the wait ended; `silent` when the time was over. @throws the signal's reason; what `answers` throws */
export async function untilAnswering ({ answers, isThere, withinMs, signal }: AnswerWait): Promise<'answers' | 'gone' | 'silent'> {
  const deadline = performance.now() + withinMs
  // Polled, since no event reports it: the socket's name appears before the process listens.
  while (isThere()) {
    signal.throwIfAborted()
    if (await answers()) return 'answers'
    if (performance.now() > deadline) return 'silent'
    await sleep(PAUSE_MS)
  }
  return 'gone'
}
