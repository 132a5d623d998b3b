// The memory of the host, and how much of it could be used now: as the kernel counts it, and as far as it lets this process and those that it starts have it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readIfThere } from '../fs/read-if-there.ts'
import { groupFacts, groupsOf, textIn, type GroupFacts } from './control-groups.ts'

export interface HostMemory { readonly totalBytes: number, readonly availableBytes: number }

/** What the kernel says about memory; tests replace it. */
export interface MemoryFacts extends GroupFacts {
  readonly meminfo: string
  /** the limit of the process's own group, of version 1 as well; 0, or more than the host has: there is none */
  readonly constrainedBytes: number
}

/** A group that the process is in or below, with its limit. */
interface Bound { readonly folder: string, readonly bytes: number }

function memoryFacts (): MemoryFacts {
  return { ...groupFacts(), meminfo: readFileSync('/proc/meminfo', 'utf8'), constrainedBytes: process.constrainedMemory() }
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

/** Limits of version 2. */
function boundsOf (facts: GroupFacts): Bound[] {
  return groupsOf(facts).flatMap((folder) => ['max', 'high'].map((name) => ({ folder, bytes: limitIn(textIn(join(folder, `memory.${name}`))) }))).filter(({ bytes }) => bytes !== Infinity)
}

function limitIn (text = 'max'): number {
  return text.trim() === 'max' ? Infinity : Number(text)
}

/** As the kernel reckons for the whole host: what it would drop is available. */
async function leftOf ({ folder, bytes }: Bound): Promise<number> {
  const [current = '0', stat = ''] = await Promise.all(['current', 'stat'].map(async (name) => await readIfThere(join(folder, `memory.${name}`))))
  const droppable = ['inactive_file', 'active_file', 'slab_reclaimable'].reduce((sum, name) => sum + Number(new RegExp(`^${name} (\\d+)$`, 'm').exec(stat)?.[1] ?? 0), 0)
  return Math.max(0, Math.min(bytes, bytes - Number(current) + droppable))
}
