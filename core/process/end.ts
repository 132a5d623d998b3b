// Ends a process for sure, whether this server started it or an earlier one did.
import { setTimeout as sleep } from 'node:timers/promises'
import type { ProcessIdentity } from '../contracts/services.ts'
import { isAlive, signalProcess } from './identity.ts'

const LIMIT_MS = 30_000
const LONGEST_PAUSE_MS = 20

/** Sends SIGKILL and resolves once the process has ended. Rejects when the kernel cannot end it (stuck I/O). */
export async function endProcess (identity: ProcessIdentity): Promise<void> {
  signalProcess(identity, 'SIGKILL')
  const start = performance.now()
  // Polled: Node has no pidfd, and only a parent hears of an exit.
  for (let pauseMs = 1; isAlive(identity); pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    if (performance.now() - start > LIMIT_MS) throw new Error(`the process ${identity.pid} still exists ${LIMIT_MS} ms after SIGKILL`)
    await sleep(pauseMs)
  }
}
