// Which permissions exist, and what a key that holds some of them may do.
import { InvalidRequest } from '../errors/common.ts'

/** The scopes of core's own routes; `*` means all scopes. A plugin's manifest names the scopes of its routes. */
export const CORE_SCOPES: readonly string[] = ['*', 'resource:read', 'key:read', 'key:write']

/** All scopes that a key can be given when these plugins are enabled. */
export function scopesOf (manifests: ReadonlyArray<{ readonly scopes?: readonly string[] }>): readonly string[] {
  return [...new Set([...CORE_SCOPES, ...manifests.flatMap(({ scopes }) => scopes ?? []).sort()])]
}

/** Refuses an empty list and unknown scopes. */
export function checkScopes (scopes: readonly string[], known: readonly string[]): void {
  if (scopes.length === 0) throw InvalidRequest(`scopes: at least one is needed, of ${known.join(', ')}`)
  for (const scope of scopes) {
    if (!known.includes(scope)) throw InvalidRequest(`scopes: ${scope} is no scope; there are ${known.join(', ')}`)
  }
}
