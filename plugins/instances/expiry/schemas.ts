// The fields of a create and an update that say when an instance expires. Their faults have codes of their own.
import { Type } from 'typebox'

export const Lifetime = {
  ttl: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'Go duration such as 1h30m, from now on, after which the instance is deleted; 0s: never' })),
  expires_at: Type.Optional(Type.String({ minLength: 1, maxLength: 64, description: 'Time in the future (RFC 3339) at which the instance is deleted; not together with ttl' }))
}
