// The space on the disk that is used but not claimed: images, and the registry's layers.
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../core/errors/system-code.ts'

export interface DiskUsage {
  readonly imageBytes: number
  readonly registryBytes: number
}

/** A registry may have many files, so it is measured no more often than this. */
const MAX_AGE_MS = 10_000

export interface DiskUsageMeter {
  /** as it is now, or was at most that time ago */
  now (): Promise<DiskUsage>
  /** The last measurement, at once. When it is old, another one begins, for the next caller. */
  last (): Promise<DiskUsage>
}

export function createDiskUsage (dataDir: string, clock: () => number = () => performance.now()): DiskUsageMeter {
  let measured: DiskUsage | undefined
  let measuredAt = -Infinity
  let measuring: Promise<DiskUsage> | undefined

  async function now (): Promise<DiskUsage> {
    if (measured !== undefined && clock() - measuredAt <= MAX_AGE_MS) return measured
    measuring ??= measure(dataDir).finally(() => { measuring = undefined })
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

async function measure (dataDir: string): Promise<DiskUsage> {
  const [imageBytes, registryBytes] = await Promise.all([treeBytes(join(dataDir, 'images')), treeBytes(join(dataDir, 'registry'))])
  return { imageBytes, registryBytes }
}

/** The disk space of all files below a folder. Files that are removed meanwhile count nothing. */
async function treeBytes (folder: string): Promise<number> {
  const entries = await unlessGone(async () => await readdir(folder, { withFileTypes: true }), [])
  let bytes = 0
  // One folder after the other: this is not urgent, and must not slow down requests.
  for (const entry of entries) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) bytes += await treeBytes(path)
    else if (entry.isFile()) bytes += await unlessGone(async () => (await stat(path)).blocks * 512, 0)
  }
  return bytes
}

async function unlessGone<T> (read: () => Promise<T>, otherwise: T): Promise<T> {
  try {
    return await read()
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return otherwise
    throw error
  }
}
