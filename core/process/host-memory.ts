// The memory of the host, and how much of it could be used now: as the kernel counts it, and as far as it lets this process and those that it starts have it.
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { hasCode } from '../errors/system-code.ts'
import { readIfThere } from '../fs/read-if-there.ts'
import { groupFolder, hierarchiesIn } from './control-groups.ts'

export interface HostMemory { readonly totalBytes: number, readonly availableBytes: number }

/** What the kernel says about memory; tests replace it. */
export interface MemoryFacts {
  readonly meminfo: string
  readonly mountinfo: string
  readonly cgroup: string
  /** the limit of the process's own group, of version 1 as well; 0, or more than the host has: there is none */
  readonly constrainedBytes: number
}

/** A group that the process is in or below, with its limit. */
interface Bound { readonly folder: string, readonly bytes: number }

/** At once, as each create asks: the kernel has these texts in memory, and a thread of the pool takes ten times as long. */
function memoryFacts (): MemoryFacts {
  const [meminfo = '', mountinfo = '', cgroup = ''] = ['/proc/meminfo', '/proc/self/mountinfo', '/proc/self/cgroup'].map((path) => readFileSync(path, 'utf8'))
  return { meminfo, mountinfo, cgroup, constrainedBytes: process.constrainedMemory() }
}

/** Read anew each time, since the memory of a host may change, and its limits. */
export function totalMemory ({ meminfo, constrainedBytes, ...groups }: MemoryFacts = memoryFacts()): number {
  return Math.min(bytesIn(meminfo, 'MemTotal'), constrainedBytes > 0 ? constrainedBytes : Infinity, ...boundsOf(groups).map(({ bytes }) => bytes))
}

/** The same, with what is left. */
export async function memoryOfHost (facts: MemoryFacts = memoryFacts()): Promise<HostMemory> {
  return { totalBytes: totalMemory(facts), availableBytes: Math.min(bytesIn(facts.meminfo, 'MemAvailable'), ...await Promise.all(boundsOf(facts).map(leftOf))) }
}

function bytesIn (meminfo: string, name: string): number {
  const kilobytes = new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(meminfo)?.[1]
  if (kilobytes === undefined) throw new Error(`/proc/meminfo names no ${name}`)
  return Number(kilobytes) * 1024
}

/** Limits of version 2: of the process's own group, and of all above it, since what holds for a service or a slice is not repeated in the groups below. */
function boundsOf ({ mountinfo, cgroup }: Pick<MemoryFacts, 'mountinfo' | 'cgroup'>): Bound[] {
  const hierarchy = hierarchiesIn(mountinfo).find(({ version }) => version === 2)
  const own = hierarchy === undefined ? undefined : groupFolder(hierarchy, cgroup)
  if (hierarchy === undefined || own === undefined) return []
  const folders = [own]
  for (let folder = own; folder.length > hierarchy.mount.length; folder = dirname(folder)) folders.push(dirname(folder))
  return folders.flatMap((folder) => ['max', 'high'].map((name) => ({ folder, bytes: limitIn(join(folder, `memory.${name}`)) }))).filter(({ bytes }) => bytes !== Infinity)
}

function limitIn (path: string): number {
  try {
    const text = readFileSync(path, 'utf8').trim()
    return text === 'max' ? Infinity : Number(text)
  } catch (error) {
    // The root has none, nor has a hierarchy without this controller.
    if (hasCode(error, 'ENOENT')) return Infinity
    throw error
  }
}

/** As the kernel reckons for the whole host: what it would drop is available. */
async function leftOf ({ folder, bytes }: Bound): Promise<number> {
  const [current = '0', stat = ''] = await Promise.all(['current', 'stat'].map(async (name) => await readIfThere(join(folder, `memory.${name}`))))
  const droppable = ['inactive_file', 'active_file', 'slab_reclaimable'].reduce((sum, name) => sum + Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(stat)?.[1] ?? 0), 0)
  return Math.max(0, Math.min(bytes, bytes - Number(current) + droppable))
}
