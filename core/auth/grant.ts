// A key can never give more than it has.
import type { ApiKeyPrincipal } from '../contracts/services.ts'
import { defineError } from '../errors/define.ts'
import type { ApiKeyRecord } from './key-repository.ts'
import { holdsRepository } from './repositories.ts'

const Forbidden = defineError('Forbidden', 'forbidden', (message: string) => message)

/** What a key may do, where, and until when. */
export interface Rights {
  readonly scopes: readonly string[]
  readonly repositories?: readonly string[]
  readonly expiresAt?: number
}

/**
 * The rights of a new key. What the request leaves out is copied from the key that makes the new one.
 * @throws Forbidden, which names what the making key does not have
 */
export function rightsFrom (maker: ApiKeyPrincipal, asked: Rights): Rights {
  const repositories = asked.repositories ?? maker.repositories
  const expiresAt = asked.expiresAt ?? maker.expiresAt
  const rights = { scopes: asked.scopes, ...repositories === undefined ? {} : { repositories }, ...expiresAt === undefined ? {} : { expiresAt } }
  const excess = excessOf(maker, rights)
  if (excess !== undefined) throw Forbidden(`a key can give no more than it has: ${excess}`)
  return rights
}

/** Refuses to end a key that has more rights than the asking one: a key that may only manage keys could stop all others. Every key may end itself. */
export function checkMayRevoke (asking: ApiKeyPrincipal, { id, scopes, repositories }: ApiKeyRecord): void {
  if (id === asking.id) return
  const excess = excessOf({ ...asking, expiresAt: undefined }, { scopes, ...repositories === null ? {} : { repositories } })
  if (excess !== undefined) throw Forbidden(`a key can revoke no key that may do more than itself: ${excess}`)
}

function excessOf (held: ApiKeyPrincipal | (Omit<ApiKeyPrincipal, 'expiresAt'> & { readonly expiresAt: undefined }), { scopes, repositories, expiresAt }: Rights): string | undefined {
  const scope = held.scopes.includes('*') ? undefined : scopes.find((each) => !held.scopes.includes(each))
  if (scope !== undefined) return `it lacks the scope ${scope}`
  if (held.repositories !== undefined) {
    if (repositories === undefined) return 'it is limited to repositories'
    const outside = repositories.find((each) => !holdsRepository(held.repositories, each))
    if (outside !== undefined) return `it may not write to ${outside}`
  }
  if (held.expiresAt !== undefined && (expiresAt ?? Infinity) > held.expiresAt) return `it expires at ${new Date(held.expiresAt).toISOString()}`
  return undefined
}
