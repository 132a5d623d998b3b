// The status of a key: active, revoked or expired.

export const KEY_STATUSES = ['active', 'expired', 'revoked'] as const
export type KeyStatus = typeof KEY_STATUSES[number]

export function keyStatus ({ revokedAt, expiresAt }: { readonly revokedAt: number | null, readonly expiresAt: number | null }, now: number): KeyStatus {
  if (revokedAt !== null) return 'revoked'
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'active'
}
