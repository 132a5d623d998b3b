// What is stored of a VM so that a later server can find it, and tell it from a process that was given the same pid.
import type { VmHandle } from '../../core/contracts/hypervisor.ts'
import type { ProcessIdentity } from '../../core/contracts/services.ts'
import { HandleUnknown } from './errors.ts'

const HANDLE_VERSION = 1

export function makeHandle (process: ProcessIdentity, directory: string, vmmVersion: string): VmHandle {
  return { driver: 'qemu', version: HANDLE_VERSION, vmmVersion, pid: process.pid, startTicks: process.startTicks, bootId: process.bootId, directory }
}

/** Throws `HandleUnknown` for a handle that another driver, or a later version of this one, has made. */
export function identityOf (handle: VmHandle): ProcessIdentity {
  if (handle.driver !== 'qemu' || handle.version !== HANDLE_VERSION) throw HandleUnknown(handle.driver, handle.version)
  return { pid: handle.pid, startTicks: handle.startTicks, bootId: handle.bootId }
}
