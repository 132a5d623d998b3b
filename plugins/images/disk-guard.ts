// Ends work that would fill the disk. The unpacked size of an image is unknown until it is unpacked, and images come from strangers.
import { DiskShort, type DiskSpace } from '../../core/fs/disk-space.ts'
import { formatSize } from '../../core/units.ts'
import { PullFailure } from './failures.ts'

// The kernel reports no shortage of disk space, so it is polled. A fast disk writes about 1 GB in this time.
const INTERVAL_MS = 500

export interface DiskGuard {
  /** aborted with a PullFailure when space runs short */
  readonly signal: AbortSignal
  stop (): void
}

/**
 * @param disk the host's own guard, which also counts inodes
 * @throws PullFailure when `needBytes` do not fit now
 */
export async function guardDisk (freeBytes: () => Promise<number>, minFreeBytes: number, needBytes: number, disk?: DiskSpace): Promise<DiskGuard> {
  const shortage = (free: number, why: string): PullFailure => new PullFailure('disk-full',
    `the disk of the data folder has too little space: ${formatSize(Math.max(free, 0))} free, ${why}`)
  const before = await freeBytes()
  if (before - needBytes < minFreeBytes) {
    throw shortage(before, `${formatSize(needBytes)} needed, and ${formatSize(minFreeBytes)} must stay free`)
  }
  await disk?.check().catch((error: unknown) => { throw asFailure(error) })
  const controller = new AbortController()
  const watch = disk?.watch()
  watch?.signal.addEventListener('abort', () => { controller.abort(asFailure(watch.signal.reason)) })
  const timer = setInterval(() => {
    freeBytes().then((free) => {
      if (free < minFreeBytes) controller.abort(shortage(free, `and ${formatSize(minFreeBytes)} must stay free`))
    }, (error: unknown) => controller.abort(error))
  }, INTERVAL_MS)
  return {
    signal: controller.signal, stop: () => {
      clearInterval(timer)
      watch?.stop()
    }
  }
}

function asFailure (error: unknown): unknown {
  return error instanceof DiskShort ? new PullFailure('disk-full', error.message) : error
}
