// What processes take of the host, as the kernel counts it. Nothing of their arguments and environments, which may hold secrets.
import { readFile, readlink } from 'node:fs/promises'
import { basename } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { statFields, TICKS_PER_SECOND } from './stat.ts'

export interface ProcessUsage {
  readonly pid: number
  /** the name of the program, at most 15 bytes, which a process may change */
  readonly command: string
  /** ms since the epoch */
  readonly since: number
  readonly memoryBytes: number
  readonly cpuSeconds: number
}

/** of the fields from the state on, by the numbers of proc(5) */
const FIRST_FIELD = 3
const MOST_CHILDREN = 64
const MOST_DEEP = 4

/** Undefined when there is no such process, or this user may not look at it. */
export async function usageOf (pid: number): Promise<ProcessUsage | undefined> {
  const [stat, status, uptime] = await Promise.all([readText(`/proc/${pid}/stat`), readText(`/proc/${pid}/status`), readText('/proc/uptime')])
  if (stat === '' || status === '') return undefined
  const fields = statFields(stat)
  const ticks = (field: number): number => Number(fields[field - FIRST_FIELD] ?? 0) / TICKS_PER_SECOND
  return {
    pid,
    command: await commandOf(pid, stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'))),
    since: Math.round(Date.now() - (Number.parseFloat(uptime) - ticks(22)) * 1000),
    memoryBytes: Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024,
    cpuSeconds: Math.round((ticks(14) + ticks(15)) * 100) / 100
  }
}

/** A program that was run from a descriptor is named by its number, until it names itself. */
async function commandOf (pid: number, name: string): Promise<string> {
  return /^\d+$/.test(name) ? basename(await readlink(`/proc/${pid}/exe`).catch(() => name)) : name
}

/** The processes below it, children before grandchildren; at most 64. Empty where the kernel does not list children. @param except processes that are left out, with what is below them */
export async function processesBelow (pid: number, except: ReadonlySet<number>): Promise<number[]> {
  const found: number[] = []
  let level = [pid]
  for (let depth = 0; depth < MOST_DEEP && level.length > 0 && found.length < MOST_CHILDREN; depth++) {
    const texts = await Promise.all(level.map(async (each) => await readText(`/proc/${each}/task/${each}/children`)))
    level = texts.flatMap((text) => text.split(' ').filter((word) => word !== '').map(Number)).filter((each) => !except.has(each))
    found.push(...level)
    await nextTurn()
  }
  return found.slice(0, MOST_CHILDREN)
}

async function readText (path: string): Promise<string> {
  return await readFile(path, 'utf8').catch(() => '')
}
