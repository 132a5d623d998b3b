// Waits until the program of an instance runs; works without a guest agent, too.
import type { Context } from '../context.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { waitForState } from '../model/wait.ts'
import { CannotBeWoken, WakeTimedOut } from './errors.ts'

/** @throws CannotBeWoken when the instance ends instead, WakeTimedOut, not_found */
export async function awaitRunning (context: Context, instance: LiveInstance, timeoutMs: number): Promise<void> {
  const { signal } = context.closing
  const { state, timedOut, restoreError = instance.record.exit?.exitMessage, error = restoreError } = await waitForState(instance, { state: 'Running', timeoutMs }, signal)
  if (state === 'Running') return
  if (signal.aborted) throw CannotBeWoken(instance.name, 'the server is ending')
  if (timedOut) throw WakeTimedOut(instance.name, Math.round(timeoutMs / 1000))
  throw CannotBeWoken(instance.name, `it is ${state}${error === undefined ? '' : `: ${error}`}`)
}
