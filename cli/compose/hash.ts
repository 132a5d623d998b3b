// A hash of what a service is made from, kept as a tag: when it differs, the instance is replaced. Values of credentials are left out, since they are updated in place.
import { createHash } from 'node:crypto'
import type { ServiceModel } from './model.ts'

/** @param origin digest of the image, or id of the snapshot */
export function hashOf ({ service, instance, image, body, tags }: ServiceModel, origin: string): string {
  return createHash('sha256').update(JSON.stringify(sorted({ service, instance, image, body, tags, origin }))).digest('hex')
}

/** The order of fields has no meaning. */
function sorted (value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1).map(([name, each]) => [name, sorted(each)]))
}
