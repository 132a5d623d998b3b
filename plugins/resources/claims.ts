// The claims of this host as they are stored, kept in memory: nobody else writes them, and reading ten thousand rows for each overview would keep others waiting.
import type { ResourceClaim } from '../instances/room/contract.ts'
import { InsufficientResources } from './errors.ts'
import type { ClaimRepository, Kind, Totals } from './repository.ts'

export class Claims {
  readonly #repository: ClaimRepository
  /** by kind and id; undefined until somebody asks, and after a write whose outcome is unknown */
  #known: Map<string, ResourceClaim> | undefined
  /** the same in order; undefined after a change */
  #ordered: readonly ResourceClaim[] | undefined
  /** counts writes: what was read before one must not be kept after it */
  #writes = 0

  constructor (repository: ClaimRepository) {
    this.#repository = repository
  }

  /** In the order of their kinds and ids. */
  async all (): Promise<readonly ResourceClaim[]> {
    if (this.#known === undefined) return inOrder(await this.#read())
    this.#ordered ??= inOrder(this.#known)
    return this.#ordered
  }

  async totals (): Promise<Totals> {
    return await this.#repository.totals()
  }

  async claim (claim: ResourceClaim, refuse: (others: Totals, before: Totals) => void): Promise<void> {
    await this.#write(async () => { await this.#repository.claim(claim, refuse) }, (known) => { known.set(keyOf(claim), claim) })
  }

  async rest (id: string): Promise<void> {
    const key = keyOf({ kind: 'instance', id })
    await this.#write(async () => { await this.#repository.rest(id) }, (known) => {
      const claim = known.get(key)
      if (claim !== undefined) known.set(key, { ...claim, active: false })
    })
  }

  async release (kind: Kind, id: string): Promise<void> {
    await this.#write(async () => { await this.#repository.release(kind, id) }, (known) => { known.delete(keyOf({ kind, id })) })
  }

  async replaceAll (kind: Kind, claims: readonly ResourceClaim[]): Promise<void> {
    await this.#write(async () => { await this.#repository.replaceAll(kind, claims) }, (known) => {
      for (const [key, claim] of known) if (claim.kind === kind) known.delete(key)
      for (const claim of claims) known.set(keyOf(claim), claim)
    })
  }

  async #read (): Promise<ReadonlyMap<string, ResourceClaim>> {
    const writes = this.#writes
    const read = new Map((await this.#repository.all()).map((claim) => [keyOf(claim), claim]))
    if (writes === this.#writes) this.#known = read
    return read
  }

  async #write (write: () => Promise<void>, note: (known: Map<string, ResourceClaim>) => void): Promise<void> {
    try {
      await write()
    } catch (error) {
      // Its answer may be lost, not the change. A refusal changes nothing.
      if (!InsufficientResources.is(error)) this.#known = undefined
      throw error
    } finally {
      this.#writes += 1
      this.#ordered = undefined
    }
    if (this.#known !== undefined) note(this.#known)
  }
}

function inOrder (claims: ReadonlyMap<string, ResourceClaim>): readonly ResourceClaim[] {
  return [...claims].sort(([one], [other]) => one < other ? -1 : 1).map(([, claim]) => claim)
}

function keyOf ({ kind, id }: Pick<ResourceClaim, 'kind' | 'id'>): string {
  return `${kind} ${id}`
}
