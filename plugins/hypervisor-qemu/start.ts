// Starts a QEMU process and opens its control connection.
import { spawn } from 'node:child_process'
import { constants } from 'node:fs'
import { open, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Duplex } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { VmSpec } from '../../core/library/hypervisor.ts'
import type { ProcessIdentity } from '../../core/contracts/services.ts'
import { hasCode } from '../../core/errors/system-code.ts'
import { endProcess } from '../../core/process/end.ts'
import { readIdentity } from '../../core/process/identity.ts'
import { wordsAfter } from '../../core/process/log-words.ts'
import { connectUnix } from '../../core/process/unix-socket.ts'
import { QMP_SOCKET, type ArgsOptions } from './args.ts'
import { isRecord, openQmp, type QmpClient } from './client.ts'
import { MEMORY_LOCKED, vmmCommand } from './command.ts'
import { LaunchFailed, MemoryInUse, QmpClosed } from './errors.ts'
import { explainTap } from './network.ts'
import { runFolder } from './run-folder.ts'

const CONNECT_PAUSE_MS = 2
/** descriptor of a process that was given a stream */
export const STREAM_FD = 3

export interface StartOptions extends ArgsOptions {
  readonly binary: string
  /** time for QEMU to answer */
  readonly timeoutMs: number
}

export interface Vmm {
  readonly identity: ProcessIdentity
  /** Resolves with how it ended. */
  readonly exited: Promise<string>
  /** the other end of its `STREAM_FD`, when that was asked for */
  readonly stream?: Duplex
  /** Throws the reason when the process has ended; its own last words are in it. */
  check (): Promise<void>
  /** What it printed since its start, at most a few lines. */
  lastWords (): Promise<string>
}

/** @param withStream gives the process a socket as `STREAM_FD` */
export async function startVmm (spec: VmSpec, options: StartOptions, args: readonly string[], withStream = false): Promise<Vmm> {
  const [file, ...rest] = await vmmCommand(options.binary, args, options.accelerator, spec)
  const log = await open(spec.files.vmm, constants.O_WRONLY | constants.O_APPEND)
  try {
    const logStart = (await log.stat()).size
    const child = spawn(file, rest, {
      cwd: runFolder(spec.directory),
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LANG: 'C' },
      // in a session of its own: it outlives the server
      detached: true,
      stdio: ['ignore', log.fd, log.fd, ...withStream ? ['pipe' as const] : []]
    })
    child.unref()
    let ended: string | undefined
    const exited = new Promise<string>((resolve) => {
      child.once('error', (error) => resolve(error.message))
      child.once('exit', (code, signal) => resolve(signal === null ? `exit code ${code}` : signal))
    })
    exited.then((how) => { ended = how }, () => {})
    const identity = child.pid === undefined ? undefined : readIdentity(child.pid)
    const lastWords = (): Promise<string> => wordsAfter(spec.files.vmm, logStart)
    const reasonOf = async (how: string): Promise<Error> => {
      if (how === `exit code ${MEMORY_LOCKED}` && spec.memory !== undefined) return MemoryInUse(spec.memory.path)
      const words = await lastWords()
      return LaunchFailed(`${spec.network === undefined ? '' : explainTap(words, spec.network)}QEMU ended (${how}): ${words}`)
    }
    if (identity === undefined) throw await reasonOf(await exited)
    // Before it has touched any of the guest's memory: what is counted once stays where it was counted.
    await joinGroups(spec.groups ?? [], identity)
    const stream = child.stdio[STREAM_FD]
    // Whoever uses it hears of its failures; before that, the end of the process tells.
    stream?.on('error', () => {})
    return {
      identity,
      exited,
      lastWords,
      ...isDuplex(stream) ? { stream } : {},
      async check () {
        if (ended !== undefined) throw await reasonOf(ended)
      }
    }
  } finally {
    await log.close()
  }
}

export interface ControlWait {
  readonly timeoutMs: number
  /** whether the guest's processors must run */
  readonly running: boolean
  readonly signal: AbortSignal | undefined
}

/** The control connection of a VMM that has just been started. */
export async function openControl (vmm: Vmm, spec: VmSpec, { timeoutMs, running, signal }: ControlWait): Promise<QmpClient> {
  const deadline = performance.now() + timeoutMs
  for (;;) {
    signal?.throwIfAborted()
    await vmm.check()
    if (performance.now() > deadline) throw LaunchFailed(`QEMU did not answer within ${timeoutMs} ms: ${await vmm.lastWords()}`)
    const qmp = await tryControl(spec, deadline, running)
    if (qmp !== undefined) return qmp
    // Polled, since no event tells of it: the socket's name appears before anyone listens.
    await sleep(CONNECT_PAUSE_MS)
  }
}

async function tryControl (spec: VmSpec, deadline: number, running: boolean): Promise<QmpClient | undefined> {
  try {
    const socket = await connectUnix(runFolder(spec.directory), QMP_SOCKET)
    const timeoutMs = Math.max(deadline - performance.now(), 1)
    const qmp = await openQmp(socket, timeoutMs)
    if (!running) return qmp
    const answer = await qmp.execute('query-status', {}, timeoutMs)
    if (isRecord(answer) && answer['running'] === true) return qmp
    qmp.close()
    return undefined
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ECONNREFUSED', 'ECONNRESET') || QmpClosed.is(error)) return undefined
    throw error
  }
}

/** Throws when it has to run without the limits that it is to have. */
async function joinGroups (folders: readonly string[], identity: ProcessIdentity): Promise<void> {
  try {
    await Promise.all(folders.map((folder) => writeFile(join(folder, 'cgroup.procs'), String(identity.pid))))
  } catch (error) {
    // One that has ended tells by itself why.
    if (hasCode(error, 'ESRCH')) return
    await endProcess(identity)
    throw LaunchFailed.from(error, `QEMU could not be put in its control group: ${error instanceof Error ? error.message : String(error)}`)
  }
}

function isDuplex (stream: unknown): stream is Duplex {
  return typeof stream === 'object' && stream !== null && 'write' in stream && 'read' in stream
}
