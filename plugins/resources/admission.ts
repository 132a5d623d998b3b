// Whether there is room for a claim, and what is short when there is none. Pure.
import { formatRate, formatSize } from '../../core/units.ts'
import type { Limits } from './capacity.ts'
import { InsufficientResources } from './errors.ts'
import type { Totals } from './repository.ts'

interface Dimension {
  readonly name: string
  readonly of: (totals: Totals) => number
  /** undefined: no limit */
  readonly limit: (limits: Limits) => number | undefined
  readonly text: (amount: number) => string
}

const DIMENSIONS: readonly Dimension[] = [
  { name: 'cpu', of: ({ vcpus }) => vcpus, limit: ({ cpu }) => cpu.limit, text: (count) => `${round(count)} vCPUs` },
  { name: 'memory', of: ({ memoryBytes }) => memoryBytes, limit: ({ memory }) => memory.limit, text: formatWhole(formatSize) },
  { name: 'disk', of: ({ diskBytes }) => diskBytes, limit: ({ disk }) => disk.limit, text: formatWhole(formatSize) },
  { name: 'network download', of: ({ downloadBps }) => downloadBps, limit: ({ download }) => download?.limit, text: formatWhole(formatRate) },
  { name: 'network upload', of: ({ uploadBps }) => uploadBps, limit: ({ upload }) => upload?.limit, text: formatWhole(formatRate) },
  { name: 'disk I/O', of: ({ diskIoBps }) => diskIoBps, limit: ({ diskIo }) => diskIo?.limit, text: formatWhole(formatRate) }
]

/**
 * @param others the sum of all other claims
 * @param before the claim as it was until now: only what grows is checked, even when the host has shrunk since
 * @throws insufficient_resources
 */
export function checkRoom (wanted: Totals, before: Totals, others: Totals, limits: Limits): void {
  const short = DIMENSIONS.flatMap(({ name, of, limit: limitOf, text }) => {
    const limit = limitOf(limits)
    if (limit === undefined || of(wanted) <= of(before) || of(others) + of(wanted) <= limit) return []
    const free = Math.max(0, limit - of(others))
    return [`${name}: ${text(of(wanted))} wanted, ${text(free)} of ${text(limit)} free`]
  })
  if (wanted.diskBytes > before.diskBytes && limits.freeDiskBytes === 0) short.push(`disk: ${formatWhole(formatSize)(wanted.diskBytes)} wanted, and the file system of the data folder has nothing left beyond what must stay free`)
  if (short.length > 0) throw InsufficientResources(short)
}

/** What is promised of the disk. Writable disks of instances do not count where they are overcommitted. */
export function countedDisk ({ diskBytes, overlayBytes }: Pick<Totals, 'diskBytes' | 'overlayBytes'>, { freeDiskBytes }: Pick<Limits, 'freeDiskBytes'>): number {
  return freeDiskBytes === undefined ? diskBytes : diskBytes - overlayBytes
}

function formatWhole (format: (amount: number) => string): (amount: number) => string {
  return (amount) => format(Math.floor(amount))
}

function round (count: number): number {
  return Math.round(count * 100) / 100
}
