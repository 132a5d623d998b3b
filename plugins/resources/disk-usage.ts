// The space on the disk that is used but not claimed: images, and the registry's layers.
import { join } from 'node:path'
import { CountedTree } from './counted-tree.ts'

export interface DiskUsage {
  readonly imageBytes: number
  readonly registryBytes: number
}

/** A registry may have many folders, so they are looked at no more often than this. */
const MAX_AGE_MS = 10_000

export interface DiskUsageMeter {
  /** as it is now, or was at most that time ago */
  now (): Promise<DiskUsage>
  /** The last measurement, at once. When it is old, another one begins, for the next caller. */
  last (): Promise<DiskUsage>
}

export function createDiskUsage (dataDir: string, clock: () => number = () => performance.now()): DiskUsageMeter {
  const images = new CountedTree(join(dataDir, 'images'))
  const registry = new CountedTree(join(dataDir, 'registry'))
  let measured: DiskUsage | undefined
  let measuredAt = -Infinity
  let measuring: Promise<DiskUsage> | undefined

  async function measure (): Promise<DiskUsage> {
    const [imageBytes, registryBytes] = await Promise.all([images.bytes(), registry.bytes()])
    return { imageBytes, registryBytes }
  }

  async function now (): Promise<DiskUsage> {
    if (measured !== undefined && clock() - measuredAt <= MAX_AGE_MS) return measured
    measuring ??= measure().finally(() => { measuring = undefined })
    measured = await measuring
    measuredAt = clock()
    return measured
  }

  return {
    now,
    async last () {
      const newest = now()
      if (measured === undefined) return await newest
      // A failure is reported to the next caller.
      newest.catch(() => {})
      return measured
    }
  }
}
