// Starts a QEMU process and waits until its guest runs. Undoes everything when that does not come about.
import { spawn } from 'node:child_process'
import { constants } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { VmSpec } from '../../core/contracts/hypervisor.ts'
import type { ProcessIdentity } from '../../core/contracts/services.ts'
import { readIdentity } from '../../core/process/identity.ts'
import { lastLines } from '../../core/process/tail.ts'
import { createUndo } from '../../core/undo.ts'
import { connectUnix } from '../../core/process/unix-socket.ts'
import { buildArgs, QMP_SOCKET, type ArgsOptions } from './args.ts'
import { isRecord, openQmp, type QmpClient } from './client.ts'
import { vmmCommand } from './command.ts'
import { endProcess } from '../../core/process/end.ts'
import { hasCode } from '../../core/errors/system-code.ts'
import { LaunchFailed, QmpClosed } from './errors.ts'
import { makeHandle } from './handle.ts'
import { makeRunFolder, reclaimRunFolder, removeRunFolder, runFolder } from './run-folder.ts'
import { QemuVm, type VmOptions } from './vm.ts'

const CONNECT_PAUSE_MS = 2
const REPORTED_LINES = 5
const REPORTED_BYTES = 4096

export interface LaunchOptions extends ArgsOptions, VmOptions {
  readonly binary: string
  /** time for QEMU to answer */
  readonly timeoutMs: number
}

interface Vmm {
  readonly identity: ProcessIdentity
  /** Resolves with how it ended. */
  readonly exited: Promise<string>
}

/** The driver's `launch`, once it is known how guest instructions run. */
export async function launchVm (spec: VmSpec, options: LaunchOptions, signal?: AbortSignal): Promise<QemuVm> {
  const args = buildArgs(spec, options)
  signal?.throwIfAborted()
  await reclaimRunFolder(spec.directory)
  const undo = createUndo()
  try {
    await makeRunFolder(spec)
    undo.add(() => removeRunFolder(spec.directory))
    const logStart = (await stat(spec.files.vmm)).size
    const vmm = await startVmm(spec, options, args)
    undo.add(() => endProcess(vmm.identity))
    const qmp = await openControl(vmm, spec, { logStart, timeoutMs: options.timeoutMs }, signal)
    undo.add(() => qmp.close())
    const vm = new QemuVm(makeHandle(vmm.identity, spec.directory, qmp.version), { status: 'running' }, options, qmp)
    vmm.exited.then(() => vm.notice(), options.onError)
    undo.drop()
    return vm
  } catch (error) {
    await undo.run()
    throw signal?.aborted === true ? signal.reason : error
  }
}

async function startVmm (spec: VmSpec, options: LaunchOptions, args: readonly string[]): Promise<Vmm> {
  const [file, ...rest] = await vmmCommand(options.binary, args, options.accelerator, spec.identity)
  const log = await open(spec.files.vmm, constants.O_WRONLY | constants.O_APPEND)
  try {
    const child = spawn(file, rest, {
      cwd: runFolder(spec.directory),
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C' },
      // in a session of its own: it outlives the server
      detached: true,
      stdio: ['ignore', log.fd, log.fd]
    })
    child.unref()
    const exited = new Promise<string>((resolve) => {
      child.once('error', (error) => resolve(error.message))
      child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : signal))
    })
    const identity = child.pid === undefined ? undefined : readIdentity(child.pid)
    if (identity === undefined) throw LaunchFailed(`${file}: ${await exited}`)
    return { identity, exited }
  } finally {
    await log.close()
  }
}

interface Wait { readonly logStart: number, readonly timeoutMs: number }

/** The control connection of a VMM whose guest runs. When the VMM ends instead, its own last words are the reason. */
async function openControl (vmm: Vmm, spec: VmSpec, { logStart, timeoutMs }: Wait, signal: AbortSignal | undefined): Promise<QmpClient> {
  const deadline = Date.now() + timeoutMs
  let ended: string | undefined
  vmm.exited.then((how) => { ended = how }, () => {})
  for (;;) {
    signal?.throwIfAborted()
    if (ended !== undefined) throw LaunchFailed(`QEMU ended (${ended}): ${await lastWords(spec.files.vmm, logStart)}`)
    if (Date.now() > deadline) throw LaunchFailed(`QEMU did not answer within ${timeoutMs} ms: ${await lastWords(spec.files.vmm, logStart)}`)
    const qmp = await tryControl(spec, deadline)
    if (qmp !== undefined) return qmp
    // Polled, since no event tells of it: the socket's name appears before anyone listens.
    await sleep(CONNECT_PAUSE_MS)
  }
}

async function tryControl (spec: VmSpec, deadline: number): Promise<QmpClient | undefined> {
  try {
    const socket = await connectUnix(runFolder(spec.directory), QMP_SOCKET)
    const timeoutMs = Math.max(deadline - Date.now(), 1)
    const qmp = await openQmp(socket, timeoutMs)
    const answer = await qmp.execute('query-status', {}, timeoutMs)
    if (isRecord(answer) && answer['running'] === true) return qmp
    qmp.close()
    return undefined
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ECONNREFUSED', 'ECONNRESET') || QmpClosed.is(error)) return undefined
    throw error
  }
}

/** What the VMM printed since its launch, at most a few lines. */
async function lastWords (path: string, start: number): Promise<string> {
  const handle = await open(path, 'r')
  try {
    const from = Math.max(start, (await handle.stat()).size - REPORTED_BYTES)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(REPORTED_BYTES), 0, REPORTED_BYTES, from)
    const lines = lastLines(buffer.toString('utf8', 0, bytesRead), REPORTED_LINES)
    return lines === '' ? 'it printed nothing' : lines
  } finally {
    await handle.close()
  }
}
