// The errors of the guest plugin. `guest_refused` and `guest_gone` have different codes (see contract.ts).
import { defineError, type BerthError } from '../../core/errors/define.ts'
import type { GuestRefusal } from './contract.ts'

const refused = defineError('guest_refused', 'internal', (message: string) => message)

export interface RefusalFacts { readonly errno?: number, readonly exitCode?: number }

/** The guest refused. Callers decide by `errno` what it means for their own callers. */
export function guestRefused (message: string, facts: RefusalFacts = {}): BerthError & GuestRefusal {
  return Object.assign(refused(message), { code: 'guest_refused' as const, errno: facts.errno, exitCode: facts.exitCode })
}

/** The conversation has ended; requests that were under way have no answer. */
export const GuestGone = defineError('guest_gone', 'unavailable', (reason: string) => `the connection to the guest ended: ${reason}`)

export const KernelUnavailable = defineError('kernel_unavailable', 'unavailable', (what: string) => `no guest kernel: ${what}`)

export const KernelPackageUnknown = defineError('kernel_package_unknown', 'unavailable',
  (name: string) => `no guest kernel: apt knows no package ${name}, also after an update`)

export const KernelHeadersUnavailable = defineError('kernel_headers_unavailable', 'unavailable',
  (why: string) => `the modules and headers of the guest's kernel cannot be had: ${why}; with skip_kernel_headers: true an instance goes without them`)

export const KernelInvalid = defineError('kernel_invalid', 'internal', (path: string, why: string) => `${path} is not a kernel that can be booted: ${why}`)

export const ModuleMissing = defineError('kernel_module_missing', 'internal',
  (name: string, folder: string) => `the kernel module ${name} is neither in ${folder} nor built into the kernel`)

export const InitMissing = defineError('guest_init_missing', 'internal',
  (path: string) => `berth-init, the guest's first process, is missing at ${path}: run "npm run build"`)
