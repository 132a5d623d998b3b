// Work that takes the VM from an instance.
import type { LiveInstance } from '../model/live-instance.ts'

/** The instance's lock is held. */
export async function leaving<T> (instance: LiveInstance, work: () => Promise<T>): Promise<T> {
  instance.isLeaving = true
  try {
    return await work()
  } finally {
    instance.isLeaving = false
  }
}
