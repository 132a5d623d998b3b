// Work that writes to the disk of the data folder, of which stays free what must.
import { withSignals } from '../jobs/deadline.ts'
import type { DiskSpace } from './disk-space.ts'

/** Does work whose signal aborts when the disk runs short, or with one of the others. The work is not begun on a disk that is short already. @throws DiskShort */
export async function withRoom<T> (disk: DiskSpace, signals: readonly AbortSignal[], work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const watch = disk.watch()
  try {
    await disk.check()
    return await withSignals([...signals, watch.signal], work)
  } finally {
    watch.stop()
  }
}
