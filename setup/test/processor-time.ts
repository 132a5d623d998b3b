// For `--times`: how much processor time a test file takes with all processes that it starts. A control group counts it; `wait` would leave out servers
// and VMs that outlive the process that started them.
import { mkdir, readFile, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { FileOutcome } from './count.ts'

const CGROUPS = '/sys/fs/cgroup'

export interface Meter {
  /** the command that runs `command` inside the group */
  wrap: (command: readonly string[]) => string[]
  /** Seconds that all processes of the group have used. */
  seconds: () => Promise<number>
  /** Removes the group. */
  end: () => Promise<void>
}

/** Makes a control group. Throws when this user cannot make one. */
export async function startMeter (name: string): Promise<Meter> {
  const [parent, figure] = await place()
  const folder = join(parent, name)
  await mkdir(folder)
  return {
    wrap: (command) => ['/bin/sh', '-c', 'echo $$ > "$0"/cgroup.procs && exec "$@"', folder, ...command],
    seconds: async () => await figure(folder),
    end: async () => await removeGroup(folder)
  }
}

/** A process that has ended stays in its group for a moment. One that still runs keeps the group. */
async function removeGroup (folder: string): Promise<void> {
  for (let tries = 0; tries < 20; tries++) {
    const isGone = await rmdir(folder).then(() => true, () => false)
    if (isGone) return
    await setTimeout(50)
  }
}

/** Where groups are made, and how one is read: version 1 has a hierarchy for accounting, version 2 counts in each group. */
async function place (): Promise<[string, (folder: string) => Promise<number>]> {
  const lines = (await readFile('/proc/self/cgroup', 'utf8')).split('\n').map((line) => line.split(':'))
  const accounting = lines.find(([, controllers = '']) => controllers.split(',').includes('cpuacct'))
  if (accounting !== undefined) {
    return [join(CGROUPS, 'cpuacct', accounting[2] ?? ''), async (folder) => Number(await readFile(join(folder, 'cpuacct.usage'), 'utf8')) / 1e9]
  }
  const own = lines.find(([, controllers]) => controllers === '')?.[2] ?? ''
  return [join(CGROUPS, own), async (folder) => Number(/^usage_usec (\d+)$/m.exec(await readFile(join(folder, 'cpu.stat'), 'utf8'))?.[1]) / 1e6]
}

/** A table of the files by processor time, the most first, and of their folders. */
export function timesOf (outcomes: readonly FileOutcome[]): string[] {
  const files = outcomes.flatMap(({ name, processorSeconds }) => processorSeconds === undefined ? [] : [{ name, seconds: processorSeconds }])
  const groups = new Map<string, number>()
  for (const { name, seconds } of files) {
    const group = name.split('/').slice(0, 3).filter((part) => !part.endsWith('.ts')).join('/')
    groups.set(group, (groups.get(group) ?? 0) + seconds)
  }
  const rows = (list: ReadonlyArray<{ name: string, seconds: number }>): string[] => [...list].sort((a, b) => b.seconds - a.seconds).map(({ name, seconds }) => `${seconds.toFixed(1).padStart(8)}  ${name}`)
  const all = files.reduce((sum, { seconds }) => sum + seconds, 0)
  return ['processor seconds by file:', ...rows(files), 'by folder:', ...rows([...groups].map(([name, seconds]) => ({ name, seconds }))), ...rows([{ name: 'all', seconds: all }])]
}
