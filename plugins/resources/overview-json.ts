// The answer of GET /resources as JSON. What it says of instances is kept until a claim of theirs changes, and the text of each for as long as its claim stays as it is: making ten thousand of them takes longer than all the rest.
import { mapInTurns } from '../../core/jobs/in-turns.ts'
import type { KeptBytes } from '../../core/http/kept-json.ts'
import { contentHash, entityTag } from '../../core/http/entity-tag.ts'
import type { ResourceClaim } from '../instances/room/contract.ts'
import { allocationOf } from './overview.ts'
import type { ResourcesView } from './schemas.ts'

interface Allocations {
  readonly instances: readonly ResourceClaim[]
  readonly bytes: Buffer
  readonly hash: string
}

export class OverviewJson {
  readonly #texts = new WeakMap<ResourceClaim, string>()
  #kept: Allocations = allocationsOf([], [])

  /** @param instances claims of instances, which are the allocations; the same array for as long as they are the same */
  async of (overview: Omit<ResourcesView, 'allocations'>, instances: readonly ResourceClaim[]): Promise<KeptBytes> {
    const { bytes, hash } = instances === this.#kept.instances ? this.#kept : await this.#keep(instances)
    const beginning = `${JSON.stringify(overview).slice(0, -1)},"allocations":`
    return { bytes: Buffer.concat([Buffer.from(beginning), bytes, Buffer.from('}')]), tag: entityTag(beginning + hash) }
  }

  async #keep (instances: readonly ResourceClaim[]): Promise<Allocations> {
    this.#kept = allocationsOf(instances, await mapInTurns(instances, (claim) => this.#textOf(claim)))
    return this.#kept
  }

  #textOf (claim: ResourceClaim): string {
    let text = this.#texts.get(claim)
    if (text === undefined) this.#texts.set(claim, text = JSON.stringify(allocationOf(claim)))
    return text
  }
}

function allocationsOf (instances: readonly ResourceClaim[], texts: readonly string[]): Allocations {
  const bytes = Buffer.from(`[${texts.join(',')}]`)
  return { instances, bytes, hash: contentHash(bytes) }
}
