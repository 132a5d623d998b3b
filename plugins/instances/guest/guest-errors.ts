// The two ways in which a call to the guest can fail: the guest refused it, or the link broke.
import type { GuestRefusal } from '../../guest/contract.ts'

/** Whether the guest answered that it refuses the call. */
export function isRefusal (error: unknown): error is GuestRefusal {
  return error instanceof Error && 'code' in error && error.code === 'guest_refused'
}

/** Whether the link broke before an answer came. */
export function isLoss (error: unknown): error is Error & { readonly code: 'guest_gone' } {
  return error instanceof Error && 'code' in error && error.code === 'guest_gone'
}
