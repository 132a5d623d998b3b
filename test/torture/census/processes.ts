// The processes of this namespace, which has only what the torture has started.
import { readdir, readFile, readlink } from 'node:fs/promises'
import { basename } from 'node:path'

export interface Process {
  readonly pid: number
  readonly parent: number
  /** letter of proc(5); `Z` has ended and was not asked how */
  readonly state: string
  readonly startTime: string
  readonly command: readonly string[]
  readonly cwd: string
}

export async function processes (): Promise<Process[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number)
  const found = await Promise.all(pids.map(async (pid): Promise<Process[]> => {
    try {
      const [stat, command, cwd] = await Promise.all([readFile(`/proc/${pid}/stat`, 'utf8'), readFile(`/proc/${pid}/cmdline`, 'utf8'), readlink(`/proc/${pid}/cwd`).catch(() => '')])
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return [{ pid, state: fields[0] ?? '', parent: Number(fields[1]), startTime: fields[19] ?? '', command: command.split('\0').slice(0, -1), cwd }]
    } catch {
      // It has ended meanwhile.
      return []
    }
  }))
  return found.flat().sort((a, b) => a.pid - b.pid)
}

export const isVmm = ({ command: [program = ''], state }: Process): boolean => state !== 'Z' && basename(program).startsWith('qemu-system')
export const isProxy = ({ command, state }: Process): boolean => state !== 'Z' && basename(command[0] ?? '') !== 'setpriv' && command.some((word) => word.endsWith('/proxy/main.js'))
export const isWorker = ({ command, state }: Process): boolean => state !== 'Z' && command.some((word) => word.endsWith('/proxy/worker.js'))
/** It outlives servers, as VMs do. */
export const isLogGuard = ({ command: [program = ''], state }: Process): boolean => state !== 'Z' && basename(program) === 'berth-log-guard'

/** It ends with the server. */
export const isSpawner = ({ command: [program = ''], state }: Process): boolean => state !== 'Z' && basename(program) === 'berth-spawner'

const pidsOf = async (isOne: (process: Process) => boolean): Promise<number[]> => (await processes()).filter(isOne).map(({ pid }) => pid)

/** a title of its own; it outlives servers */
export const isNginx = ({ command: [title = ''], state }: Process): boolean => state !== 'Z' && title.startsWith('nginx: ')

export const vmmPids = async (): Promise<number[]> => await pidsOf(isVmm)
export const proxyPids = async (): Promise<number[]> => await pidsOf(isProxy)
export const workerPids = async (): Promise<number[]> => await pidsOf(isWorker)
