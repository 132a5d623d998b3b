// Waits for a state: until the instance is in it, cannot get there any more, the time is over, or whoever waits has left.
import { NotFound } from '../../../core/errors/common.ts'
import type { InstanceState } from '../contract.ts'
import type { LiveInstance } from './live-instance.ts'
import { isTerminal, type DerivedState } from './state.ts'

export interface WaitFor { readonly state: InstanceState, readonly timeoutMs: number }

export interface Waited extends DerivedState {
  readonly timedOut: boolean
  /** It is neither there nor in a state that stays: whoever waits has left, or was told to. */
  readonly cutOff: boolean
}

/** @throws NotFound when the instance is deleted meanwhile */
export async function waitForState (instance: LiveInstance, wanted: WaitFor, signal: AbortSignal): Promise<Waited> {
  const settled = (): boolean => instance.deleted || instance.state === wanted.state || isTerminal(instance.state)
  let timedOut = false
  if (!settled()) {
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer)
        unsubscribe()
        signal.removeEventListener('abort', end)
        resolve()
      }
      const timer = setTimeout(() => {
        timedOut = true
        end()
      }, wanted.timeoutMs)
      const unsubscribe = instance.onChange(() => { if (settled()) end() })
      signal.addEventListener('abort', end)
      if (signal.aborted) end()
    })
  }
  if (instance.deleted) throw NotFound('instance', instance.id)
  return { ...instance.derived, timedOut, cutOff: !timedOut && !settled() }
}
