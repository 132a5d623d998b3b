// What is stored of the life of a new instance.
import { expiryOf } from '../expiry/expiry.ts'
import type { InstanceSpec } from '../model/record.ts'
import type { Life } from './record.ts'

export function lifeOf ({ lifetime }: Pick<InstanceSpec, 'lifetime'>): Life {
  return { expiry: expiryOf(lifetime) }
}
