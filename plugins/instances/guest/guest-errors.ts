// Tells the two ways in which a call to the guest can fail apart.

/** Whether the guest answered and said no. */
export function isRefusal (error: unknown): error is Error & { readonly code: 'guest_refused', readonly errno?: number } {
  return error instanceof Error && 'code' in error && error.code === 'guest_refused'
}

/** Whether the link broke before an answer came. */
export function isLoss (error: unknown): error is Error & { readonly code: 'guest_gone' } {
  return error instanceof Error && 'code' in error && error.code === 'guest_gone'
}
