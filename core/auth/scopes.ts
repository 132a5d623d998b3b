// Which permissions exist, and what a key that holds some of them may do.
import { InvalidRequest } from '../errors/common.ts'

const AREAS = ['instance', 'image', 'volume', 'snapshot', 'build', 'device', 'ingress']
const ACTIONS = ['read', 'write', 'delete']

/** Every scope that a key can be given; `*` is all of them. */
export const SCOPES: readonly string[] = ['*', ...AREAS.flatMap((area) => ACTIONS.map((action) => `${area}:${action}`)), 'build:admin', 'resource:read']

/** Refuses an empty list and scopes that do not exist. */
export function checkScopes (scopes: readonly string[]): void {
  if (scopes.length === 0) throw InvalidRequest(`scopes: at least one is needed, of ${SCOPES.join(', ')}`)
  for (const scope of scopes) {
    if (!SCOPES.includes(scope)) throw InvalidRequest(`scopes: ${scope} is no scope; there are ${SCOPES.join(', ')}`)
  }
}
