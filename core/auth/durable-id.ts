// The id by which work that outlives its request remembers the key that asked for it.
import type { ApiKeyPrincipal } from '../contracts/services.ts'
import { hashKey } from './key-text.ts'

/** id of the key of `BERTH_API_KEY`, as the API shows it */
export const PROCESS_ID = 'process'
/** hexadecimal digits: enough to tell the keys of an operator apart */
const HASH_LENGTH = 16

/** The id that `ApiKeys.current` takes: to be stored, and never shown. */
export function durableIdOf ({ id, durableId }: Pick<ApiKeyPrincipal, 'id' | 'durableId'>): string {
  return durableId ?? id
}

/** For the key of `BERTH_API_KEY`: the next start may have another, which must not go on with what this one began. */
export function durableProcessId (key: string): string {
  return `${PROCESS_ID}:${hashKey(key).slice(0, HASH_LENGTH)}`
}

/** For answers: an operator may have chosen a key that could be guessed by a part of its hash. */
export function shownKeyId (durableId: string): string {
  return durableId.startsWith(`${PROCESS_ID}:`) ? PROCESS_ID : durableId
}
