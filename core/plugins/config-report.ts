// What `check` of a plugin says whose values are judged by the same function as at its start.
import { messageOf } from './lifecycle.ts'
import type { ConfigReport } from './manifest.ts'

/** @param read throws an error that names the key. It must neither look at the host nor change anything */
export async function reportOf (read: () => unknown): Promise<ConfigReport> {
  try {
    read()
    return { problems: [], files: [] }
  } catch (error) {
    return { problems: [messageOf(error)], files: [] }
  }
}
