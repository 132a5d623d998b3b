// Ends a process for sure, whether this server started it or an earlier one did.
import { setTimeout as sleep } from 'node:timers/promises'
import type { ProcessIdentity } from '../contracts/services.ts'
import { isAlive, signalProcess } from './identity.ts'

const LIMIT_MS = 30_000
const LONGEST_PAUSE_MS = 20

/** Sends SIGKILL and resolves once the process has ended. Rejects when the kernel cannot end it (stuck I/O). */
export async function endProcess (identity: ProcessIdentity): Promise<void> {
  signalProcess(identity, 'SIGKILL')
  if (!await hasEnded(identity, LIMIT_MS)) throw new Error(`the process ${identity.pid} still exists ${LIMIT_MS} ms after SIGKILL`)
}

export interface GentleEnd {
  /** the signal that asks it to end */
  readonly request?: NodeJS.Signals
  /** the time it gets to finish its work */
  readonly withinMs: number
  readonly signal?: AbortSignal
}

/** Asks a process to end, and kills it when it does not. Resolves once it has ended. @throws the signal's reason; the process is then left as it is */
export async function endGently (identity: ProcessIdentity, { request = 'SIGTERM', withinMs, signal }: GentleEnd): Promise<void> {
  signalProcess(identity, request)
  if (!await hasEnded(identity, withinMs, signal)) await endProcess(identity)
}

async function hasEnded (identity: ProcessIdentity, withinMs: number, signal?: AbortSignal): Promise<boolean> {
  const start = performance.now()
  // Polled: Node has no pidfd, and only a parent is told of an exit.
  for (let pauseMs = 1; isAlive(identity); pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    signal?.throwIfAborted()
    if (performance.now() - start > withinMs) return false
    await sleep(pauseMs)
  }
  return true
}
