// Starts berth-log-guard (guard/main.c), which bounds the files that VMMs append to even while no server runs. The guard of an earlier server ends by itself.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { Socket } from 'node:net'
import { join } from 'node:path'
import type { Logger, ProcessIdentity } from '../../../core/contracts/services.ts'
import { packageRoot } from '../../../core/package-root.ts'
import { readIdentity } from '../../../core/process/identity.ts'
import { TrackedProcess, type ProcessRegister } from '../../../core/process/register.ts'
import { manifest } from '../manifest.ts'
import { REPORT_FLOOD_BYTES } from './rotate.ts'

const PROGRAM = 'dist/plugins/instances/logs/berth-log-guard'
const RESTART_MS = 1000
/** the time for the guard's decision, which takes a look at all processes */
const STOP_MS = 5000
/** The guard cuts a log only when it is more than this many times its size, so never one that the server rotates in time. */
const SLACK = 2

export interface LogGuard {
  /** Resolves once the guard has ended, or goes on alone because there are VMs. */
  stop (): Promise<void>
}

/**
 * @param folder of all instances; it exists
 * @param maxBytes the size at which the server rotates a log
 * @param processes where people see it
 */
export function startLogGuard (folder: string, maxBytes: number, log: Pick<Logger, 'warn'>, processes: ProcessRegister): LogGuard {
  let identity: ProcessIdentity | undefined
  const track = new TrackedProcess({ processes, plugin: manifest.id, name: 'guard of the VMs\' logs', identity: () => identity })
  let child: ChildProcess | undefined
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  const start = (): void => {
    // Detached, so that no signal to the server's group ends it, and without a working folder of its own.
    const started = spawn(join(packageRoot, PROGRAM), [folder, String(maxBytes * SLACK), String(REPORT_FLOOD_BYTES)], { cwd: '/', env: {}, detached: true, stdio: ['pipe', 'pipe', 'ignore'] })
    child = started
    identity = started.pid === undefined ? undefined : readIdentity(started.pid)
    if (identity !== undefined) track.started()
    let over = false
    const end = (how: unknown): void => {
      if (stopped || over) return
      over = true
      track.ended(`has ended (${how instanceof Error ? how.message : String(how)})`)
      log.warn({ reason: String(how), program: PROGRAM }, 'the guard of the VMs\' logs has ended, and is started again: without it they have no bound while no server runs')
      timer = setTimeout(start, RESTART_MS)
      timer.unref()
    }
    started.once('error', end)
    started.once('exit', (code, signal) => { end(signal ?? `exit code ${code}`) })
    started.stdin?.on('error', () => {})
    started.unref()
    // The ends of the pipes tell the guard that the server has gone. They must not keep the server alive.
    for (const pipe of [started.stdin, started.stdout]) if (pipe instanceof Socket) pipe.unref()
  }
  start()
  return {
    async stop () {
      stopped = true
      track.leave()
      clearTimeout(timer)
      const { stdin, stdout } = child ?? {}
      if (!(stdout instanceof Socket) || stdout.destroyed) return
      stdout.ref().resume()
      const decided = once(stdout, 'close', { signal: AbortSignal.timeout(STOP_MS) })
      stdin?.end()
      await decided.catch(() => {})
    }
  }
}
