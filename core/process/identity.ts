// Tells a process from a later one with the same pid.
import { readdirSync, readFileSync } from 'node:fs'
import type { ProcessIdentity } from '../contracts/services.ts'
import { hasCode } from '../errors/system-code.ts'
import { statFields } from './stat.ts'

/** The id of this machine's boot. */
export function bootId (): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
}

/** The identity of a running process; undefined when there is none (a zombie does not count). */
export function readIdentity (pid: number): ProcessIdentity | undefined {
  const startTicks = startTicksOf(pid)
  return startTicks === undefined ? undefined : { pid, startTicks, bootId: bootId() }
}

/**
 * Whether exactly this process still runs, with any of its threads: the first thread of a dying process can be a zombie while others
 * still hold its files, and with them its sockets and the locks on its disks.
 */
export function isAlive (identity: ProcessIdentity): boolean {
  return identity.bootId === bootId() && startTicksOf(identity.pid) === identity.startTicks
}

/**
 * Sends a signal to exactly this process; false when it is gone. Nothing is awaited between check and kill:
 * to hit a wrong process, the kernel would have to use up every other pid in those microseconds.
 */
export function signalProcess (identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isAlive(identity)) return false
  try {
    process.kill(identity.pid, signal)
    return true
  } catch (error) {
    if (hasCode(error, 'ESRCH')) return false
    throw error
  }
}

function startTicksOf (pid: number): string | undefined {
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined
  let stat: string
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch (error) {
    // ESRCH: it ended between open and read
    if (hasCode(error, 'ENOENT', 'ESRCH')) return undefined
    throw error
  }
  const fields = statFields(stat)
  const state = fields[0]
  const isDead = state === 'X' || (state === 'Z' && threadsOf(pid) <= 1)
  return isDead ? undefined : fields[19]
}

function threadsOf (pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/task`).length
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH')) return 0
    throw error
  }
}
