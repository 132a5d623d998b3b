// Where an instance's files stand. Names only; files.ts makes and removes them.
import { join } from 'node:path'

export interface InstancePaths {
  readonly directory: string
  /** the writable disk */
  readonly overlay: string
  /** folder of the writable disks of volumes with an overlay */
  readonly volumes: string
  /** the program's output, written by the VMM */
  readonly output: string
  /** the guest kernel's console and the VMM's own messages, written by the VMM */
  readonly vmm: string
  /** the guest's last report, written by the VMM */
  readonly report: string
  /** what the server did with the instance, written by the server */
  readonly operations: string
  /** the VM's memory, for as long as it has a VM or a memory image */
  readonly memory: string
  /** a memory file that its VM maps privately, and the folder for it alone; see memory-image/base.ts */
  readonly base: { readonly folder: string, readonly memory: string }
  /** folders of the rest of a memory image: while it is made, once it is whole, and from the moment at which a VM is started on it */
  readonly image: { readonly making: string, readonly whole: string, readonly taken: string }
  /** folders of a copy of disk and image, which is removed once a VM has gone on from them: while the copy is made, and once it is whole */
  readonly kept: { readonly making: string, readonly whole: string }
  /** folders of the files that are to replace disk and memory: while they are gathered, and once they are whole and being put in place */
  readonly replacement: { readonly making: string, readonly whole: string }
}

export function instancesFolder (dataDir: string): string {
  return join(dataDir, 'instances')
}

export function pathsOf (dataDir: string, id: string): InstancePaths {
  return pathsAt(join(instancesFolder(dataDir), id))
}

/** The same in any folder. */
export function pathsAt (directory: string): InstancePaths {
  // `join` would look at each character of the folder again for each of these paths, of ten thousand instances at a start.
  return {
    directory,
    overlay: `${directory}/overlay.ext4`,
    volumes: `${directory}/volumes`,
    output: `${directory}/output.log`,
    vmm: `${directory}/vmm.log`,
    report: `${directory}/report`,
    operations: `${directory}/operations.log`,
    memory: `${directory}/memory`,
    base: { folder: `${directory}/base`, memory: `${directory}/base/memory` },
    image: { making: `${directory}/standby.making`, whole: `${directory}/standby`, taken: `${directory}/standby.taken` },
    kept: { making: `${directory}/restore.making`, whole: `${directory}/restore.kept` },
    replacement: { making: `${directory}/replacement.making`, whole: `${directory}/replacement` }
  }
}

/** The one old file that is kept of a rotated log. */
export function rotatedPath (path: string): string {
  return `${path}.1`
}
