// What can go wrong between Berth and a QEMU process. Each message is a sentence for the operator's log or an instance's `state_error`.
import { defineError } from '../../core/errors/define.ts'

export const LaunchFailed = defineError('vm_launch_failed', 'internal', (why: string) => `the VM could not be started: ${why}`)

export const SpecInvalid = defineError('vm_spec_invalid', 'internal', (why: string) => `the VM cannot be built as asked: ${why}`)

export const VmGone = defineError('vm_gone', 'wrong-state', (id: string) => `the VM in ${id} has ended`)

export const HandleUnknown = defineError('vm_handle_unknown', 'internal', (driver: string, version: number) => `a VM handle of driver ${driver}, version ${version}, is not one that this driver can take over`)

export const QmpClosed = defineError('qmp_closed', 'unavailable', (reason: string) => `the connection to QEMU ended: ${reason}`)

export const QmpTimeout = defineError('qmp_timeout', 'timeout', (command: string, ms: number) => `QEMU did not answer ${command} within ${ms} ms`)

export const QmpRefused = defineError('qmp_refused', 'internal', (command: string, why: string) => `QEMU refused ${command}: ${why}`)

export const ImageIncompatible = defineError('image_incompatible', 'conflict', (differences: string) => `the memory image cannot be used for this VM: ${differences}`)

export const ImageDamaged = defineError('image_damaged', 'internal', (why: string) => `the memory image is damaged: ${why}`)

export const RestoreFailed = defineError('vm_restore_failed', 'internal', (why: string) => `the VM could not be restored: ${why}`)

export const CaptureFailed = defineError('vm_capture_failed', 'internal', (why: string) => `the VM could not be captured: ${why}`)

export const MemoryInUse = defineError('memory_in_use', 'conflict', (path: string) => `another VM uses the memory file ${path}`)
