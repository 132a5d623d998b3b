// Who is counted where work, streams and requests are limited for each key.
import type { ApiKeyPrincipal } from '../contracts/services.ts'

/** Id of the key that a request counts for: a token counts for the key that it stands for, so that no key gets further shares with tokens. Empty for a caller that needs no key. */
export function countedFor (principal: Pick<ApiKeyPrincipal, 'id' | 'owner'> | null): string {
  return principal?.owner ?? principal?.id ?? ''
}
