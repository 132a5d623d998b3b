// The files for the guest's output of a VMM that cannot write them itself: berth-vm-output (output/main.c) becomes the VMM, and leaves a process behind that writes them.
import { once } from 'node:events'
import { readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { hasCode } from '../../errors/system-code.ts'
import { packageRoot } from '../../package-root.ts'
import { connectUnix } from '../../process/unix-socket.ts'
import type { VmSpec } from '../hypervisor.ts'
import { RotateFailed } from './errors.ts'
import { prepareLogFile } from './log-file.ts'
import type { RunFolder } from './run-folder.ts'
import { OUTPUT_PORT, REPORT_PORT } from './vsock.ts'

export const OUTPUT_PROGRAM = join(packageRoot, 'dist/core/library/vmm/berth-vm-output')

const CONTROL_SOCKET = 'output.sock'
const ANSWER_TIMEOUT_MS = 5000
/** The process gives whoever connects 200 ms to ask (output/keep.c), which a server on a busy host may miss: it asks again. */
const MOST_ASKS = 5
/** names of the links in the run folder */
const LINKS = { vmm: 'console', output: 'output', report: 'report' } as const

/** Makes the links. @param vsock name of the VMM's socket for its guest's vsock */
export async function linkOutput (folder: RunFolder, files: VmSpec['files']): Promise<void> {
  for (const [file, name] of Object.entries(LINKS)) await folder.link(name, files[file === 'vmm' ? 'vmm' : file === 'output' ? 'output' : 'report'])
}

/**
 * The command prefix of the VMM.
 * @param vsock path of the VMM's socket for its guest's vsock, from the run folder
 * @param user whom the process that writes the files becomes, where what becomes the VMM is still root
 */
export function outputArgs (vsock: string, user?: NonNullable<VmSpec['identity']>): string[] {
  return [...user === undefined ? [] : ['--as', `${user.uid}:${user.gid}`], CONTROL_SOCKET, LINKS.vmm, `${LINKS.output}=${vsock}_${OUTPUT_PORT}`, `${LINKS.report}=${vsock}_${REPORT_PORT}`, '--']
}

/** `Vm.rotate`: the link names the new file, and the process that writes the files opens it in place of the old one. */
export async function rotateOutput (folder: RunFolder, file: 'output' | 'vmm', path: string, vmmPid: number): Promise<void> {
  await prepareLogFile(path, vmmPid)
  const name = LINKS[file]
  const before = await readlink(join(folder.path, name))
  await folder.link(name, path)
  const errno = await reopen(folder)
  if (errno === 0) return
  await folder.link(name, before)
  throw RotateFailed(path, errno)
}

async function reopen (folder: RunFolder): Promise<number> {
  for (let asks = 1; ; asks++) {
    try {
      return await askToReopen(folder)
    } catch (error) {
      if (asks < MOST_ASKS && hasCode(error, 'EPIPE', 'ECONNRESET')) continue
      if (hasCode(error, 'ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'EAGAIN', 'ABORT_ERR')) return -1
      throw error
    }
  }
}

async function askToReopen (folder: RunFolder): Promise<number> {
  const socket = await connectUnix(folder.path, CONTROL_SOCKET)
  try {
    socket.write('r')
    const [answer]: unknown[] = await once(socket, 'data', { signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) })
    return Buffer.isBuffer(answer) ? answer[0] ?? -1 : -1
  } finally {
    socket.destroy()
  }
}

const END_TIMEOUT_MS = 3000
const END_PAUSE_MS = 3

/** Resolves once the process that writes the files has ended, soon after the VMM: all output is written by then. */
export async function outputEnded (folder: RunFolder): Promise<void> {
  const deadline = performance.now() + END_TIMEOUT_MS
  while (performance.now() < deadline) {
    try {
      (await connectUnix(folder.path, CONTROL_SOCKET)).destroy()
    } catch (error) {
      // ECONNRESET: the process closed a connection at once, so it still runs. EAGAIN: as many as may wait do so, since a busy host has not let it run. On any other error nobody
      // listens: it has ended.
      if (!hasCode(error, 'ECONNRESET', 'EAGAIN')) return
    }
    await sleep(END_PAUSE_MS)
  }
}
