// Knows what is free on the disk of the data folder, and what must stay free: bytes, and inodes, which many small files can use up. Code that lets bytes in from
// outside asks before it begins, and is told while it goes on: a caller that fills the disk takes it from every VM and from the database.
import { statfsSync, type StatsFs } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { formatSize } from '../units.ts'

/** The kernel does not announce that a disk gets full, so the disk is asked at this interval. A fast disk writes about 0.2 GB in it, and an archive's small files take some thousand inodes. */
const INTERVAL_MS = 100
/** code that counts incoming bytes reports before each further piece of this size, however fast they come */
const COUNTED_BYTES = 4 * 2 ** 20
/** on a small disk at most this part is kept free, whatever is configured */
const LARGEST_PART = { bytes: 1 / 20, inodes: 1 / 10 } as const

export interface DiskAmount {
  readonly bytes: number
  /** files and folders; infinite on a file system that creates inodes as they are needed */
  readonly inodes: number
}

/** Less would be free than must stay free. */
export class DiskShort extends Error {
  override readonly name = 'DiskShort'
}

export interface DiskWatch {
  /** aborted with `DiskShort` when the disk runs short, or with the error of asking it */
  readonly signal: AbortSignal
  /** Reports bytes that are about to be written. May abort the signal before it returns. */
  count (bytes: number): void
  stop (): void
}

/** core/fs/disk-space.ts: the disk of the data folder */
export interface DiskSpace {
  free (): Promise<DiskAmount>
  /** @param need what is about to be used, as far as it is known @throws DiskShort when that much is not available */
  check (need?: Partial<DiskAmount>): Promise<void>
  /** Asks the disk again and again until it is told to stop. One question serves all watchers. */
  watch (): DiskWatch
}

/** @param reserve what must stay free */
export function createDiskSpace (folder: string, reserve: DiskAmount): DiskSpace {
  const watching = new Set<AbortController>()
  let timer: NodeJS.Timeout | undefined
  let countedBytes = 0

  const faultOf = ({ free, total }: Amounts, { bytes = 0, inodes = 0 }: Partial<DiskAmount> = {}): DiskShort | undefined => {
    const keepBytes = Math.min(reserve.bytes, Math.floor(total.bytes * LARGEST_PART.bytes))
    const keepInodes = Number.isFinite(total.inodes) ? Math.min(reserve.inodes, Math.floor(total.inodes * LARGEST_PART.inodes)) : 0
    if (free.bytes - bytes < keepBytes) {
      return new DiskShort(`the disk of the data folder has too little space: ${readable(free.bytes)} free${bytes === 0 ? '' : `, ${readable(bytes)} needed`}, and ${readable(keepBytes)} must stay free`)
    }
    if (free.inodes - inodes < keepInodes) {
      return new DiskShort(`the disk of the data folder has too little space: inodes for ${free.inodes} more files${inodes === 0 ? '' : `, ${inodes} needed`}, and ${keepInodes} must stay free`)
    }
    return undefined
  }
  const look = (): void => {
    statfs(folder).then((stats) => { judge(faultOf(amounts(stats))) }, end)
  }
  const judge = (short: DiskShort | undefined): void => { if (short !== undefined) end(short) }
  const end = (reason: unknown): void => {
    for (const controller of watching) controller.abort(reason)
    watching.clear()
    rest()
  }
  const rest = (): void => {
    if (watching.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
  return {
    free: async () => amounts(await statfs(folder)).free,
    async check (need) {
      const short = faultOf(amounts(await statfs(folder)), need)
      if (short !== undefined) throw short
    },
    watch () {
      const controller = new AbortController()
      watching.add(controller)
      timer ??= setInterval(look, INTERVAL_MS)
      return {
        signal: controller.signal,
        count (bytes) {
          countedBytes += bytes
          if (countedBytes < COUNTED_BYTES) return
          countedBytes = 0
          judge(faultOf(amounts(statfsSync(folder))))
        },
        stop () {
          watching.delete(controller)
          rest()
        }
      }
    }
  }
}

interface Amounts { readonly free: DiskAmount, readonly total: DiskAmount }

function amounts ({ bavail, blocks, bsize, ffree, files }: StatsFs): Amounts {
  const counts = files > 0
  return { free: { bytes: bavail * bsize, inodes: counts ? ffree : Infinity }, total: { bytes: blocks * bsize, inodes: counts ? files : Infinity } }
}

/** Whole MB, since exact numbers of free bytes are hard to read. */
function readable (bytes: number): string {
  const mib = 2 ** 20
  return bytes < mib ? `${bytes}B` : formatSize(Math.floor(bytes / mib) * mib)
}
