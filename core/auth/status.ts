// What became of a key.
import type { ApiKeyRecord } from './key-repository.ts'

export const KEY_STATUSES = ['active', 'expired', 'revoked'] as const
export type KeyStatus = typeof KEY_STATUSES[number]

export function keyStatus ({ revokedAt, expiresAt }: Pick<ApiKeyRecord, 'revokedAt' | 'expiresAt'>, now: number): KeyStatus {
  if (revokedAt !== null) return 'revoked'
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'active'
}
