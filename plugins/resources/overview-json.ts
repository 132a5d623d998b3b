// The answer of GET /resources as JSON. The text of an allocation is kept for as long as its claim stays as it is: making ten thousand of them takes longer than all the rest.
import type { ResourceClaim } from '../instances/room/contract.ts'
import { allocationOf } from './overview.ts'
import type { ResourcesView } from './schemas.ts'

const texts = new WeakMap<ResourceClaim, string>()

/** @param instances claims of instances, which are the allocations */
export function overviewJson (overview: Omit<ResourcesView, 'allocations'>, instances: readonly ResourceClaim[]): string {
  return `${JSON.stringify(overview).slice(0, -1)},"allocations":[${instances.map(textOf).join(',')}]}`
}

function textOf (claim: ResourceClaim): string {
  let text = texts.get(claim)
  if (text === undefined) texts.set(claim, text = JSON.stringify(allocationOf(claim)))
  return text
}
