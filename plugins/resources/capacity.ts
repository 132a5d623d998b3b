// What the host has, as configured or as detected, and how much of it may be promised.
import type { StatsFs } from 'node:fs'
import { statfs } from 'node:fs/promises'
import { totalMemory } from '../../core/process/host-memory.ts'
import { processorsOfHost } from '../../core/process/host-processors.ts'
import type { Settings } from './settings.ts'
import { uplinkRate } from './uplink.ts'

export type CapacitySource = 'configured' | 'detected' | 'unknown'

export interface Capacity {
  readonly capacity: number
  /** what may be promised: without the reserve, times the ratio */
  readonly limit: number
  readonly ratio: number
  readonly source: CapacitySource
}

/** A resource that is absent is unknown, and any amount of it may be promised. */
export interface Limits {
  readonly cpu: Capacity
  readonly memory: Capacity
  readonly disk: Capacity
  /** what the file system really has free beyond what must stay free, where writable disks are promised beyond that; undefined: they count in full */
  readonly freeDiskBytes?: number
  readonly download?: Capacity
  readonly upload?: Capacity
  readonly diskIo?: Capacity
  /** why the capacity of the network is unknown */
  readonly networkReason?: string
}

/** The part of the plugin networking's configuration that is needed here. */
export interface NetworkCapacity {
  /** bytes per second */
  readonly downloadBps?: number
  readonly uploadBps?: number
  /** undefined without the plugin networking */
  readonly uplink?: string
}

/** Kept free when new writable disks are made and these are overcommitted: the existing ones go on growing. */
const GUARD = { part: 1 / 20, mostBytes: 10 * 2 ** 30 } as const

/** Read anew each time, since processors, memory and disks of a host may change. */
export async function limitsOf ({ capacity, reserve, ratio, overcommit }: Settings, dataDir: string, network: NetworkCapacity): Promise<Limits> {
  const [disk, uplink] = await Promise.all([
    statfs(dataDir),
    network.downloadBps === undefined || network.uploadBps === undefined ? uplinkRate(network.uplink) : undefined
  ])
  const of = (configured: number | undefined, found: number, held: number, times: number): Capacity => {
    const amount = configured ?? found
    return { capacity: amount, limit: Math.max(0, amount - held) * times, ratio: times, source: configured === undefined ? 'detected' : 'configured' }
  }
  const link = (configured: number | undefined): Capacity | undefined =>
    configured === undefined && uplink?.bytesPerSecond === undefined ? undefined : of(configured, uplink?.bytesPerSecond ?? 0, 0, ratio.network)
  const download = link(network.downloadBps)
  const upload = link(network.uploadBps)
  return {
    cpu: of(capacity.cpu, processorsOfHost(), reserve.cpu, ratio.cpu),
    memory: of(capacity.memoryBytes, capacity.memoryBytes ?? totalMemory(), reserve.memoryBytes, ratio.memory),
    disk: of(capacity.diskBytes, disk.blocks * disk.bsize, reserve.diskBytes, ratio.disk),
    ...overcommit.disk ? { freeDiskBytes: freeBytes(disk, reserve.diskBytes) } : {},
    ...download === undefined ? {} : { download },
    ...upload === undefined ? {} : { upload },
    ...download !== undefined || upload !== undefined || uplink?.reason === undefined ? {} : { networkReason: uplink.reason },
    ...capacity.diskIoBps === undefined ? {} : { diskIo: of(capacity.diskIoBps, 0, 0, ratio.diskIo) }
  }
}

/** The space that new files may begin to fill. */
function freeBytes ({ bavail, blocks, bsize }: StatsFs, reserved: number): number {
  return Math.max(0, bavail * bsize - Math.max(reserved, Math.min(GUARD.mostBytes, blocks * bsize * GUARD.part)))
}
