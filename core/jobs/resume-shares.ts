// After a restart, unfinished work counts for its key as before.
import type { ApiKeys } from '../contracts/services.ts'
import type { Owner, Shares } from './shares.ts'

/** Work that an earlier server began. */
export interface ResumedWork {
  readonly id: string
  /** the durable id of the key that asked for it; an earlier version has stored none */
  readonly keyId?: string | null
}

/** Counts what this server goes on with. That of a key which has ended counts for the server alone. */
export async function resumeShares (shares: Shares, apiKeys: Pick<ApiKeys, 'current'>, work: readonly ResumedWork[]): Promise<void> {
  const owners = new Map<string, Owner>()
  for (const { id, keyId } of work) {
    if (keyId != null && !owners.has(keyId)) owners.set(keyId, await apiKeys.current(keyId) ?? { id: keyId, name: '' })
    shares.resume(keyId == null ? null : owners.get(keyId) ?? null, id)
  }
}
