// Which permissions exist, and what a key that holds some of them may do.
import { InvalidRequest } from '../errors/common.ts'

/** What core's own routes ask for; `*` is all scopes. A plugin's manifest names those of its routes. */
export const CORE_SCOPES: readonly string[] = ['*', 'resource:read', 'key:read', 'key:write']

/** Every scope that a key can be given, when these plugins are enabled. */
export function scopesOf (manifests: ReadonlyArray<{ readonly scopes?: readonly string[] }>): readonly string[] {
  return [...new Set([...CORE_SCOPES, ...manifests.flatMap(({ scopes }) => scopes ?? []).sort()])]
}

/** Refuses an empty list and scopes that are not among the known ones. */
export function checkScopes (scopes: readonly string[], known: readonly string[]): void {
  if (scopes.length === 0) throw InvalidRequest(`scopes: at least one is needed, of ${known.join(', ')}`)
  for (const scope of scopes) {
    if (!known.includes(scope)) throw InvalidRequest(`scopes: ${scope} is no scope; there are ${known.join(', ')}`)
  }
}
