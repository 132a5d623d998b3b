// Waits for a process that has been started to take connections.
import { setTimeout as sleep } from 'node:timers/promises'

const PAUSE_MS = 10

export interface AnswerWait {
  answers (): Promise<boolean>
  /** whether there is still somebody who could */
  isThere (): boolean
  readonly withinMs: number
  readonly signal: AbortSignal
}

/** How the wait ended; `silent` when the time did. @throws the signal's reason; what `answers` throws */
export async function untilAnswering ({ answers, isThere, withinMs, signal }: AnswerWait): Promise<'answers' | 'gone' | 'silent'> {
  const deadline = performance.now() + withinMs
  // Polled, since no event tells of it: a socket appears before anyone listens.
  while (isThere()) {
    signal.throwIfAborted()
    if (await answers()) return 'answers'
    if (performance.now() > deadline) return 'silent'
    await sleep(PAUSE_MS)
  }
  return 'gone'
}
