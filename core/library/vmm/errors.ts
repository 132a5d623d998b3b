// The errors between Berth and a VMM of any kind. Each message is a sentence for the operator's log or an instance's `state_error`.
import { defineError } from '../../errors/define.ts'

export const LaunchFailed = defineError('vm_launch_failed', 'internal', (why: string) => `the VM could not be started: ${why}`)

export const SpecInvalid = defineError('vm_spec_invalid', 'internal', (why: string) => `the VM cannot be built as asked: ${why}`)

export const VmGone = defineError('vm_gone', 'wrong-state', (id: string) => `the VM in ${id} has ended`)

export const HandleUnknown = defineError('vm_handle_unknown', 'internal', (driver: string, version: number) => `a VM handle of driver ${driver}, version ${version}, is not one that this driver can take over`)

export const ImageIncompatible = defineError('image_incompatible', 'conflict', (differences: string) => `the memory image cannot be used for this VM: ${differences}`)

export const ImageDamaged = defineError('image_damaged', 'internal', (why: string) => `the memory image is damaged: ${why}`)

export const RestoreFailed = defineError('vm_restore_failed', 'internal', (why: string) => `the VM could not be restored: ${why}`)

export const CaptureFailed = defineError('vm_capture_failed', 'internal', (why: string) => `the VM could not be captured: ${why}`)

export const MemoryInUse = defineError('memory_in_use', 'conflict', (path: string) => `another VM uses the memory file ${path}`)

export const VmmRefused = defineError('vmm_refused', 'internal', (name: string, call: string, why: string) => `${name} refused ${call}: ${why}`)

export const VmmSilent = defineError('vmm_silent', 'timeout', (name: string, call: string, ms: number) => `${name} did not answer ${call} within ${ms} ms`)

export const VmmUnreachable = defineError('vmm_unreachable', 'unavailable', (name: string, why: string) => `${name} cannot be spoken to: ${why}`)

export const GuestUnreachable = defineError('guest_unreachable', 'unavailable', (why: string) => `the guest's agent cannot be reached: ${why}`)

/** 501: the driver does not support this on any host. */
export const DriverCannot = defineError('not_supported', 'unsupported', (driver: string, what: string) => `the hypervisor ${driver} cannot ${what}`)

export const RotateFailed = defineError('vm_rotate_failed', 'internal', (path: string, errno: number) => `the VM's output cannot be moved to ${path}${errno < 0 ? ': nobody keeps its files any more' : ` (errno ${errno})`}`)

/** The errors of a driver's calls that callers of the API see. */
export const DRIVER_ERRORS = [DriverCannot, GuestUnreachable, ImageIncompatible, MemoryInUse, VmGone, VmmSilent, VmmUnreachable]
