// Opens the control connection of a QEMU process that has just been started.
import { setTimeout as sleep } from 'node:timers/promises'
import type { VmSpec } from '../../core/library/hypervisor.ts'
import { hasCode } from '../../core/errors/system-code.ts'
import { growingPauseMs } from '../../core/library/vmm/growing-pause.ts'
import { LaunchFailed } from '../../core/library/vmm/errors.ts'
import type { Vmm } from '../../core/library/vmm/start.ts'
import { connectUnix } from '../../core/process/unix-socket.ts'
import { QMP_SOCKET, type ArgsOptions } from './args.ts'
import { isRecord } from '../../core/json/is-record.ts'
import { openQmp, type QmpClient } from './client.ts'
import { QmpClosed } from './errors.ts'
import { folderOf } from './run-folder.ts'

export interface StartOptions extends ArgsOptions {
  readonly binary: string
  /** time for QEMU to answer */
  readonly timeoutMs: number
}

export interface ControlWait {
  readonly timeoutMs: number
  /** whether the guest's processors must run */
  readonly running: boolean
  readonly signal: AbortSignal | undefined
}

/** The control connection of a VMM that has just been started. */
export async function openControl (vmm: Vmm, spec: VmSpec, { timeoutMs, running, signal }: ControlWait): Promise<QmpClient> {
  const began = performance.now()
  const deadline = began + timeoutMs
  for (;;) {
    signal?.throwIfAborted()
    await vmm.check()
    if (performance.now() > deadline) throw LaunchFailed(`QEMU did not answer within ${timeoutMs} ms: ${await vmm.lastWords()}`)
    const qmp = await tryControl(spec, deadline, running)
    if (qmp !== undefined) return qmp
    await sleep(growingPauseMs(performance.now() - began))
  }
}

async function tryControl (spec: VmSpec, deadline: number, running: boolean): Promise<QmpClient | undefined> {
  try {
    const socket = await connectUnix(folderOf(spec.directory).path, QMP_SOCKET)
    const timeoutMs = Math.max(deadline - performance.now(), 1)
    const qmp = await openQmp(socket, timeoutMs)
    if (!running) return qmp
    const answer = await qmp.execute('query-status', {}, timeoutMs)
    if (isRecord(answer) && answer['running'] === true) return qmp
    qmp.close()
    return undefined
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EAGAIN') || QmpClosed.is(error)) return undefined
    throw error
  }
}
