// A deadline for what the kernel is asked to do. A driver may wait for the users of its device for as long as there are any, and nothing ends a process that waits in the kernel: only others can stop waiting for it.
import type { Sysfs } from './sysfs.ts'

/** The kernel has not come back from a write in time, and may do so at any later moment. */
export class KernelSilent extends Error {}

export interface PatientSysfs extends Sysfs {
  /** Whether the kernel may still do what it was asked to do about a device (an address, or the uuid of a mediated one), and was not waited for. */
  isSilent (device: string): boolean
}

/** The same files, with writes that fail when the kernel does not come back from them. While it has not, further ones about that device fail at once: they would wait for the first one. */
export function patient (sysfs: Sysfs, timeoutMs: number): PatientSysfs {
  const silent = new Set<string>()
  return {
    ...sysfs,
    isSilent: (device) => silent.has(device),
    async write (path, text) {
      const device = deviceOf(path, text)
      if (silent.has(device)) throw new KernelSilent('the host\'s kernel has not come back from an earlier write about it, for which its driver waits; the kernel\'s messages may say why')
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<never>((_resolve, reject) => {
        timer = setTimeout(() => {
          silent.add(device)
          reject(new KernelSilent(`the host's kernel has not come back from a write to ${path} within ${timeoutMs / 1000} seconds; something may still use the device`))
        }, timeoutMs)
      })
      const done = sysfs.write(path, text).finally(() => {
        clearTimeout(timer)
        silent.delete(device)
      })
      await Promise.race([done, late])
    }
  }
}

/** Whose file that is; of those of the bus and of drivers, the device that is written into them. */
function deviceOf (path: string, text: string): string {
  const [, device] = /^bus\/[^/]+\/devices\/([^/]+)\//.exec(path) ?? []
  return device ?? text.trim()
}
