// How the cases get at a VMM behind its driver's back: as a process, or however a driver without processes plays one.
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../../core/errors/system-code.ts'
import type { VmHandle } from '../../../core/library/hypervisor.ts'
import { isAlive } from '../../../core/process/identity.ts'

/** what a fixture says of them; absent: they are processes */
interface Played { readonly vmm?: VmmAccess }

export interface VmmAccess {
  isAlive (handle: VmHandle): boolean
  /** whether it has the file open */
  holds (handle: VmHandle, path: string): Promise<boolean>
  crash (handle: VmHandle): void
  /** It answers nobody, until it goes on. */
  stop (handle: VmHandle): void
  goOn (handle: VmHandle): void
}

const PROCESS: VmmAccess = {
  isAlive,
  crash: ({ pid }) => { process.kill(pid, 'SIGKILL') },
  stop: ({ pid }) => { process.kill(pid, 'SIGSTOP') },
  goOn: ({ pid }) => { process.kill(pid, 'SIGCONT') },
  // By what is open, and not by its name: a jailed VMM has its own names.
  holds: async ({ pid }, path) => {
    const folder = `/proc/${pid}/fd`
    const { dev, ino } = await stat(path)
    const files = await Promise.all((await readdir(folder)).map(async (name) => await stat(join(folder, name)).catch((error: unknown) => {
      if (hasCode(error, 'ENOENT')) return undefined
      throw error
    })))
    return files.some((file) => file?.dev === dev && file.ino === ino)
  }
}

export function vmmOf ({ vmm = PROCESS }: Played): VmmAccess {
  return vmm
}

/** Why a case is left out that is about processes: their ids, their users, or a server that is killed and leaves them. */
export function withoutProcess ({ vmm }: Played): string | false {
  return vmm === undefined ? false : 'its VMMs are no processes'
}
