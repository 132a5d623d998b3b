// The folder `<vm>/<driver>`: the working folder of one VMM, with its sockets and the links to its files. Only this folder belongs to the VMM's user, so that a VMM
// that a guest controls cannot replace files that the server reads.
import { rmSync, statSync } from 'node:fs'
import { chown, mkdir, rename, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../errors/system-code.ts'
import { endProcess } from '../../process/end.ts'
import { argumentsOf, processesIn } from '../../process/find.ts'
import { readIdentity } from '../../process/identity.ts'
import { connectUnix, NotASocket } from '../../process/unix-socket.ts'
import type { VmSpec } from '../hypervisor.ts'

export interface RunFolder {
  readonly path: string
  /** Makes the folder, for the VMM's user alone. */
  make (identity: VmSpec['identity']): Promise<void>
  /** Makes a link to a file, in place of what has that name. The VMM opens files by names that are the same in all clones, and the links say which files they are. */
  link (name: string, target: string): Promise<void>
  /** Synchronous, so that it cannot collide with the next launch in the same folder: it is done before anyone hears that the VM is gone. */
  remove (): void
  /** Removes the folder of a VMM that has ended, unless another VMM, which listens on the socket, has been started there since. */
  removeStale (socket: string): Promise<void>
  /** Tells this folder apart from a later one of the same name; undefined when there is none. */
  mark (): string | undefined
  /**
   * Ends the VMMs that work in it without anyone knowing their handle, and removes it. They are found by their working folder: that holds from their first
   * instruction on, whatever step the launch was cut off at.
   */
  reclaim (): Promise<void>
}

/**
 * @param word an argument by which the VMM and its helpers are told from an operator's shell in the folder
 * @param beside names of files in the VM's own folder that are removed with it
 */
export function runFolder (directory: string, driver: string, word: string, beside: readonly string[] = []): RunFolder {
  const path = join(directory, driver)
  const remove = (): void => {
    for (const name of beside) rmSync(join(directory, name), { force: true })
    rmSync(path, { recursive: true, force: true })
  }
  return {
    path,
    async make (identity) {
      await mkdir(path, { mode: 0o700 })
      if (identity !== undefined) await chown(path, identity.uid, identity.gid)
    },
    link: (name, target) => placeLink(path, name, target),
    remove,
    async removeStale (socket) {
      try {
        (await connectUnix(path, socket)).destroy()
      } catch (error) {
        // A VMM listened there a moment ago.
        if (hasCode(error, 'ECONNRESET')) return
        // A file that is not a socket does not belong to a VMM that was started there.
        if (!(error instanceof NotASocket) && !hasCode(error, 'ENOENT', 'ECONNREFUSED')) throw error
        remove()
      }
    },
    mark () {
      const found = statSync(path, { bigint: true, throwIfNoEntry: false })
      return found === undefined ? undefined : `${found.ino} ${found.birthtimeNs}`
    },
    async reclaim () {
      for (const pid of await processesIn(path)) {
        // An operator's shell may have the folder as its working folder, too.
        const identity = (await argumentsOf(pid)).includes(word) ? readIdentity(pid) : undefined
        if (identity !== undefined) await endProcess(identity)
      }
      remove()
    }
  }
}

async function placeLink (folder: string, name: string, target: string): Promise<void> {
  const fresh = join(folder, `${name}.new`)
  // what a crash of the server has left
  await rm(fresh, { force: true })
  await symlink(target, fresh)
  await rename(fresh, join(folder, name))
}
