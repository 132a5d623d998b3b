// Work that takes the VM from an instance.
import type { LiveInstance } from '../model/live-instance.ts'

/** The instance's lock is held. Such work may be part of other such work. */
export async function leaving<T> (instance: LiveInstance, work: () => Promise<T>): Promise<T> {
  instance.leavings++
  try {
    return await work()
  } finally {
    instance.leavings--
  }
}
