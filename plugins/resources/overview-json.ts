// The answer of GET /resources as JSON. What it says of instances is kept until a claim of theirs changes, and the text of each for as long as its claim stays as it is: making ten thousand of them takes longer than all the rest.
import type { KeptBytes } from '../../core/http/kept-json.ts'
import { contentHash, entityTag } from '../../core/http/entity-tag.ts'
import type { ResourceClaim } from '../instances/room/contract.ts'
import { allocationOf } from './overview.ts'
import type { ResourcesView } from './schemas.ts'

export class OverviewJson {
  readonly #texts = new WeakMap<ResourceClaim, string>()
  #instances: readonly ResourceClaim[] = []
  #bytes = Buffer.from('[]')
  #hash = contentHash(this.#bytes)

  /** @param instances claims of instances, which are the allocations; the same array for as long as they are the same */
  of (overview: Omit<ResourcesView, 'allocations'>, instances: readonly ResourceClaim[]): KeptBytes {
    if (instances !== this.#instances) this.#keep(instances)
    const beginning = `${JSON.stringify(overview).slice(0, -1)},"allocations":`
    return { bytes: Buffer.concat([Buffer.from(beginning), this.#bytes, Buffer.from('}')]), tag: entityTag(beginning + this.#hash) }
  }

  #keep (instances: readonly ResourceClaim[]): void {
    this.#bytes = Buffer.from(`[${instances.map((claim) => this.#textOf(claim)).join(',')}]`)
    this.#hash = contentHash(this.#bytes)
    this.#instances = instances
  }

  #textOf (claim: ResourceClaim): string {
    let text = this.#texts.get(claim)
    if (text === undefined) this.#texts.set(claim, text = JSON.stringify(allocationOf(claim)))
    return text
  }
}
