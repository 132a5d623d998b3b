// Where an instance's files stand. Names only; files.ts makes and removes them.
import { join } from 'node:path'

export interface InstancePaths {
  readonly directory: string
  /** the writable disk */
  readonly overlay: string
  /** the program's output, written by the VMM */
  readonly output: string
  /** the guest kernel's console and the VMM's own messages, written by the VMM */
  readonly vmm: string
  /** the guest's last word, written by the VMM */
  readonly report: string
  /** what the server did with the instance, written by the server */
  readonly operations: string
}

export function instancesFolder (dataDir: string): string {
  return join(dataDir, 'instances')
}

export function pathsOf (dataDir: string, id: string): InstancePaths {
  const directory = join(instancesFolder(dataDir), id)
  return {
    directory,
    overlay: join(directory, 'overlay.ext4'),
    output: join(directory, 'output.log'),
    vmm: join(directory, 'vmm.log'),
    report: join(directory, 'report'),
    operations: join(directory, 'operations.log')
  }
}

/** The one old file that is kept of a rotated log. */
export function rotatedPath (path: string): string {
  return `${path}.1`
}
