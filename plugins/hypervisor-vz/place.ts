// A VM's run folder, and a short and plain path to it: vfkit takes only absolute paths, and macOS no path of a socket longer than 103 bytes.
import { rmSync } from 'node:fs'
import { chmod, mkdir, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { runFolder, type RunFolder } from '../../core/library/vmm/run-folder.ts'
import { digest } from '../../core/library/vmm/shape.ts'
import { API_SOCKET, DRIVER } from './names.ts'
import { checkPlace } from './spec.ts'

export interface Place extends RunFolder {
  /** the same folder, by its short path */
  readonly at: string
}

/** @param links the driver's own folder, which has a link to each run folder; all of its VMs' users may pass through it */
export function placeOf (directory: string, links: string): Place {
  const { path, ...folder } = runFolder(directory, DRIVER, `unix://${join(links, digest([directory]))}/${API_SOCKET}`)
  const at = join(links, digest([directory]))
  const unlink = (): void => { rmSync(at, { force: true }) }
  return {
    ...folder,
    path,
    at,
    async make (identity) {
      checkPlace(at)
      await folder.make(identity)
      await mkdir(links, { recursive: true, mode: 0o711 })
      await chmod(links, 0o711)
      // left by a crash of the server
      await rm(at, { force: true })
      await symlink(path, at)
    },
    remove () {
      unlink()
      folder.remove()
    },
    async removeStale (socket) {
      await folder.removeStale(socket)
      if (folder.mark() === undefined) unlink()
    },
    async reclaim () {
      await folder.reclaim()
      unlink()
    }
  }
}
