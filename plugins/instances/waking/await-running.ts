// Waits until the program of an instance runs; works without a guest agent, too.
import { NotFound } from '../../../core/errors/common.ts'
import type { Context } from '../context.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { isTerminal } from '../model/state.ts'
import { CannotBeWoken, WakeTimedOut } from './errors.ts'

/** @throws CannotBeWoken when the instance ends instead, WakeTimedOut, not_found */
export async function awaitRunning (context: Context, instance: LiveInstance, timeoutMs: number): Promise<void> {
  const { signal } = context.closing
  let late = false
  const settled = (): boolean => instance.deleted || instance.state === 'Running' || isTerminal(instance.state) || late || signal.aborted
  if (!settled()) {
    await new Promise<void>((resolve) => {
      const look = (): void => {
        if (!settled()) return
        clearTimeout(timer)
        unsubscribe()
        signal.removeEventListener('abort', look)
        resolve()
      }
      const timer = setTimeout(() => {
        late = true
        look()
      }, timeoutMs)
      const unsubscribe = instance.onChange(look)
      signal.addEventListener('abort', look)
    })
  }
  if (instance.deleted) throw NotFound('instance', instance.id)
  if (instance.state === 'Running') return
  if (signal.aborted) throw CannotBeWoken(instance.name, 'the server is ending')
  if (late) throw WakeTimedOut(instance.name, Math.round(timeoutMs / 1000))
  const { state, error = instance.record.exit?.exitMessage } = instance.derived
  throw CannotBeWoken(instance.name, `it is ${state}${error === undefined ? '' : `: ${error}`}`)
}
