// What the host has, as configured or as found, and how much of it may be promised.
import { readFile, readdir, statfs } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { hasCode } from '../../core/errors/system-code.ts'
import type { Settings } from './settings.ts'

export type CapacitySource = 'configured' | 'detected' | 'unknown'

export interface Capacity {
  readonly capacity: number
  /** what may be promised: without the reserve, times the ratio */
  readonly limit: number
  readonly ratio: number
  readonly source: CapacitySource
}

/** Of those that are absent, nothing is known and everything may be promised. */
export interface Limits {
  readonly cpu: Capacity
  readonly memory: Capacity
  readonly disk: Capacity
  readonly download?: Capacity
  readonly upload?: Capacity
  readonly diskIo?: Capacity
}

/** Bytes per second of the plugin networking's configuration. */
export interface NetworkCapacity { readonly downloadBps?: number, readonly uploadBps?: number }

/** Read anew each time: processors, memory and disks of a host come and go. */
export async function limitsOf ({ capacity, reserve, ratio }: Settings, dataDir: string, network: NetworkCapacity): Promise<Limits> {
  const [memory, disk, uplink] = await Promise.all([
    capacity.memoryBytes ?? hostMemory(),
    capacity.diskBytes ?? diskSize(dataDir),
    network.downloadBps === undefined || network.uploadBps === undefined ? uplinkSpeed() : undefined
  ])
  const of = (configured: number | undefined, found: number, held: number, times: number): Capacity => {
    const amount = configured ?? found
    return { capacity: amount, limit: Math.max(0, amount - held) * times, ratio: times, source: configured === undefined ? 'detected' : 'configured' }
  }
  const link = (configured: number | undefined): Capacity | undefined =>
    configured === undefined && uplink === undefined ? undefined : of(configured, uplink ?? 0, 0, ratio.network)
  const download = link(network.downloadBps)
  const upload = link(network.uploadBps)
  return {
    cpu: of(capacity.cpu, availableParallelism(), reserve.cpu, ratio.cpu),
    memory: of(capacity.memoryBytes, memory, reserve.memoryBytes, ratio.memory),
    disk: of(capacity.diskBytes, disk, reserve.diskBytes, ratio.disk),
    ...download === undefined ? {} : { download },
    ...upload === undefined ? {} : { upload },
    ...capacity.diskIoBps === undefined ? {} : { diskIo: of(capacity.diskIoBps, 0, 0, ratio.diskIo) }
  }
}

/** Of the host, or what the server's own control group leaves of it. */
async function hostMemory (): Promise<number> {
  const total = /^MemTotal:\s+(\d+) kB$/m.exec(await readFile('/proc/meminfo', 'utf8'))?.[1]
  if (total === undefined) throw new Error('/proc/meminfo names no MemTotal')
  const constrained = process.constrainedMemory()
  const bytes = Number(total) * 1024
  // 0, or more than there is: no limit.
  return constrained > 0 && constrained < bytes ? constrained : bytes
}

async function diskSize (folder: string): Promise<number> {
  const { blocks, bsize } = await statfs(folder)
  return blocks * bsize
}

const NETWORK_DEVICES = '/sys/class/net'

/** Bytes per second of the interface that the host's default route leaves by; undefined when that tells no speed, as virtual ones do not. */
async function uplinkSpeed (): Promise<number | undefined> {
  const routes = await textOf('/proc/net/route')
  const device = routes?.split('\n').map((line) => line.split('\t')).find(([, destination, , flags]) => destination === '00000000' && (Number.parseInt(flags ?? '0', 16) & 1) === 1)?.[0]
  if (device === undefined || !(await readdir(NETWORK_DEVICES)).includes(device)) return undefined
  const megabits = Number(await textOf(join(NETWORK_DEVICES, device, 'speed')))
  return Number.isSafeInteger(megabits) && megabits > 0 ? megabits * 125_000 : undefined
}

async function textOf (path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    // A virtual device refuses the question.
    if (hasCode(error, 'ENOENT', 'EINVAL', 'EOPNOTSUPP')) return undefined
    throw error
  }
}
