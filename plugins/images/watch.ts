// Waits for the next change of one image without polling.
import type { EventBus } from '../../core/contracts/services.ts'

export interface Watch {
  /** Resolves at the next change, at once if one has happened since the last call, or after `timeoutMs`. */
  next (timeoutMs: number, signal?: AbortSignal): Promise<void>
  close (): void
}

/** Watches from now on: must be made before the first read, or a change in between is missed. */
export function watchName (events: EventBus, name: string): Watch {
  let hasChanged = false
  let wake: (() => void) | undefined
  const unsubscribe = events.on('image.changed', (event) => {
    if (event.name !== name) return
    hasChanged = true
    wake?.()
  })
  return {
    async next (timeoutMs, signal) {
      signal?.throwIfAborted()
      if (!hasChanged) {
        let timer: NodeJS.Timeout | undefined
        const onAbort = (): void => wake?.()
        signal?.addEventListener('abort', onAbort, { once: true })
        await new Promise<void>((resolve) => {
          wake = resolve
          timer = setTimeout(resolve, timeoutMs)
        })
        wake = undefined
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
      }
      hasChanged = false
      signal?.throwIfAborted()
    },
    close: unsubscribe
  }
}
