// The folder `<vm>/qemu`: working folder of one VMM, with its sockets. It alone belongs to the VMM's user, so that a VMM
// in a guest's hands cannot replace files that the server reads.
import { rmSync, statSync } from 'node:fs'
import { chown, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { VmSpec } from '../../core/library/hypervisor.ts'
import { argumentsOf, processesIn } from '../../core/process/find.ts'
import { readIdentity } from '../../core/process/identity.ts'
import { connectUnix, NotASocket } from '../../core/process/unix-socket.ts'
import { QMP_SOCKET } from './args.ts'
import { endProcess } from '../../core/process/end.ts'
import { hasCode } from '../../core/errors/system-code.ts'

/** in the VM's own folder while a VM is captured; outlives only a crash of the server */
export const CAPTURE_SOCKET = 'capture.sock'

export function runFolder (directory: string): string {
  return join(directory, 'qemu')
}

/** Makes the folder, for the VMM's user alone. */
export async function makeRunFolder ({ directory, identity }: VmSpec): Promise<void> {
  const folder = runFolder(directory)
  await mkdir(folder, { mode: 0o700 })
  if (identity !== undefined) await chown(folder, identity.uid, identity.gid)
}

/** Synchronous, so that it cannot meet the next launch in the same folder: it is done before anyone hears that the VM is gone. */
export function removeRunFolder (directory: string): void {
  rmSync(join(directory, CAPTURE_SOCKET), { force: true })
  rmSync(runFolder(directory), { recursive: true, force: true })
}

/** Tells this run folder apart from a later one of the same name; undefined when there is none. */
export function runFolderMark (directory: string): string | undefined {
  const found = statSync(runFolder(directory), { bigint: true, throwIfNoEntry: false })
  return found === undefined ? undefined : `${found.ino} ${found.birthtimeNs}`
}

/** Removes the folder of a VMM that has ended, unless another one has been started there since. */
export async function removeStaleRunFolder (directory: string): Promise<void> {
  try {
    const socket = await connectUnix(runFolder(directory), QMP_SOCKET)
    socket.destroy()
  } catch (error) {
    // Somebody listened there a moment ago.
    if (hasCode(error, 'ECONNRESET')) return
    // What is no socket is no VMM's that was started there: QEMU would have put its own in its place.
    if (!(error instanceof NotASocket) && !hasCode(error, 'ENOENT', 'ECONNREFUSED')) throw error
    removeRunFolder(directory)
  }
}

/**
 * Ends the VMMs that work in `directory` without anyone knowing their handle, and removes the folder. They are found by
 * their working folder: that holds from their first instruction on, whatever step the launch was cut off at.
 */
export async function reclaimRunFolder (directory: string): Promise<void> {
  for (const pid of await processesIn(runFolder(directory))) {
    // An operator's shell may stand in the folder as well.
    const identity = (await argumentsOf(pid)).some((word) => word.startsWith(`unix:${QMP_SOCKET},`)) ? readIdentity(pid) : undefined
    if (identity !== undefined) await endProcess(identity)
  }
  removeRunFolder(directory)
}
