// Requests that their caller may give up: the guest is told, and its answer is not waited for.
import { unlessAborted } from '../../../core/jobs/unless-aborted.ts'
import type { Channel } from './channel.ts'

/** Why it was given up. */
export function reasonOf (signal: AbortSignal | undefined): Error {
  return signal?.reason instanceof Error ? signal.reason : new Error('cancelled')
}

/** The result of the request that `open` starts; cancels it, and rejects with the signal's reason, when the signal aborts. */
export async function unlessCancelled<T> (signal: AbortSignal | undefined, open: () => Channel<T>): Promise<T> {
  signal?.throwIfAborted()
  const channel = open()
  try {
    return await unlessAborted(signal, channel.result)
  } finally {
    if (signal?.aborted === true) channel.control({ op: 'cancel' })
  }
}
