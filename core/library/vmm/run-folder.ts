// The folder `<vm>/<driver>`: the working folder of one VMM, with its sockets and the links to its files. Only this folder belongs to the VMM's user, so that a VMM
// that a guest controls cannot replace files that the server reads.
import { randomUUID } from 'node:crypto'
import { readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { chown, mkdir, rename, rm, symlink } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { hasCode } from '../../errors/system-code.ts'
import { endProcess } from '../../process/end.ts'
import { argumentsOf, processesIn } from '../../process/find.ts'
import { readIdentity } from '../../process/identity.ts'
import { connectUnix, NotASocket } from '../../process/unix-socket.ts'
import type { VmSpec } from '../hypervisor.ts'
import { removeLater, removeNow } from './folder-removal.ts'

/** behind the name of a folder that could not be removed, or not at once, and before a text that nobody knows */
const ASIDE = '.left-'
/** A folder that cannot be removed at each of so many ends will not be at the next one. */
const MOST_ASIDE = 16

export interface RunFolder {
  readonly path: string
  /** where the VMM makes its sockets and writes its files: this folder, or one in it that is the VMM's root */
  readonly room: string
  /** Makes the folder, for the VMM's user alone. */
  make (identity: VmSpec['identity']): Promise<void>
  /** Makes a link to a file, in place of what has that name. The VMM opens files by names that are the same in all clones, and the links say which files they are. */
  link (name: string, target: string): Promise<void>
  /**
   * Synchronous, so that it cannot collide with the next launch in the same folder: it is done before anyone hears that the VM is gone. What cannot be removed now
   * (it is a mount of somebody's, or the disk fails) gets another name, and each later removal tries it again. So does what would take long, and is removed afterwards.
   */
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

export interface RunFolderOptions {
  /** names of files in the VM's own folder that are removed with it */
  readonly beside?: readonly string[]
  /** where in it a VMM that is jailed has its root, and whether this one is */
  readonly jail?: { readonly root: string, readonly isUsed: boolean }
}

/** @param word an argument by which the VMM and its helpers are told from an operator's shell in the folder */
export function runFolder (directory: string, driver: string, word: string, { beside = [], jail }: RunFolderOptions = {}): RunFolder {
  const path = join(directory, driver)
  const root = jail === undefined ? undefined : join(path, jail.root)
  const room = jail?.isUsed === true && root !== undefined ? root : path
  const remove = (): void => {
    for (const name of beside) rmSync(join(directory, name), { force: true })
    const aside = removeAside(directory, `${driver}${ASIDE}`)
    let why: unknown = new Error(`${MOST_ASIDE} folders of VMMs that have ended are still being removed in ${directory}`)
    try {
      if (removeNow(path)) return
    } catch (error) {
      why = error
    }
    if (aside >= MOST_ASIDE) throw why
    // Otherwise it would keep the VM from its next start.
    const to = `${path}${ASIDE}${randomUUID()}`
    renameSync(path, to)
    removeLater(to)
  }
  return {
    path,
    room,
    async make (identity) {
      for (const folder of [path, ...foldersBetween(path, room)]) {
        await mkdir(folder, { mode: 0o700 })
        if (identity !== undefined) await chown(folder, identity.uid, identity.gid)
      }
    },
    link: (name, target) => placeLink(path, name, target),
    remove,
    async removeStale (socket) {
      try {
        (await connectUnix(room, socket)).destroy()
      } catch (error) {
        // A VMM listened there a moment ago, or listens and does not come to it: as many as may wait do so.
        if (hasCode(error, 'ECONNRESET', 'EAGAIN')) return
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
      // One that is jailed begins in the folder and goes on in its root: so it is looked for in this order, whatever VMM is to follow.
      for (const pid of [...await processesIn(path), ...root === undefined ? [] : await processesIn(root)]) {
        // An operator's shell may have the folder as its working folder, too.
        const identity = (await argumentsOf(pid)).includes(word) ? readIdentity(pid) : undefined
        if (identity !== undefined) await endProcess(identity)
      }
      remove()
    }
  }
}

/** Removes folders that could not be removed before. Returns how many are still there. */
function removeAside (directory: string, prefix: string): number {
  const names = statSync(directory, { throwIfNoEntry: false }) === undefined ? [] : readdirSync(directory).filter((name) => name.startsWith(prefix))
  return names.filter((name) => {
    try {
      if (removeNow(join(directory, name))) return false
      removeLater(join(directory, name))
    } catch {
      // Somebody may have mounted something there.
    }
    return true
  }).length
}

/** The folders on the way from one into another, without the first. */
function foldersBetween (from: string, to: string): string[] {
  const names = relative(from, to).split(sep).filter((name) => name !== '')
  return names.map((_, index) => join(from, ...names.slice(0, index + 1)))
}

async function placeLink (folder: string, name: string, target: string): Promise<void> {
  const fresh = join(folder, `${name}.new`)
  // what a crash of the server has left
  await rm(fresh, { force: true })
  await symlink(target, fresh)
  await rename(fresh, join(folder, name))
}
