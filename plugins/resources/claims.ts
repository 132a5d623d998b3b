// The claims of this host as they are stored, kept in memory: nobody else writes them, and reading ten thousand rows for each overview would keep others waiting.
import type { ResourceClaim } from '../instances/room/contract.ts'
import { InsufficientResources } from './errors.ts'
import { KnownClaims } from './known-claims.ts'
import type { ClaimRepository, Kind, Totals } from './repository.ts'

export class Claims {
  readonly #repository: ClaimRepository
  /** undefined until somebody asks, and after a write whose outcome is unknown */
  #known: KnownClaims | undefined
  /** counts writes: what was read before one must not be kept after it */
  #writes = 0

  constructor (repository: ClaimRepository) {
    this.#repository = repository
  }

  /** To be read at once: it changes with the claims. */
  async known (): Promise<Pick<KnownClaims, 'instances' | 'totals'>> {
    return this.#known ?? await this.#read()
  }

  async totals (): Promise<Totals> {
    return await this.#repository.totals()
  }

  async claim (claim: ResourceClaim, refuse: (others: Totals, before: Totals) => void): Promise<void> {
    await this.#write(async () => { await this.#repository.claim(claim, refuse) }, (known) => { known.put(claim) })
  }

  async rest (id: string): Promise<void> {
    await this.#write(async () => { await this.#repository.rest(id) }, (known) => { known.rest(id) })
  }

  async shrink (id: string, diskBytes: number): Promise<void> {
    await this.#write(async () => { await this.#repository.shrink(id, diskBytes) }, (known) => { known.shrink(id, diskBytes) })
  }

  async release (kind: Kind, id: string): Promise<void> {
    await this.#write(async () => { await this.#repository.release(kind, id) }, (known) => { known.remove(kind, id) })
  }

  async replaceAll (kind: Kind, claims: readonly ResourceClaim[]): Promise<void> {
    await this.#write(async () => { await this.#repository.replaceAll(kind, claims) }, (known) => { known.replaceAll(kind, claims) })
  }

  async #read (): Promise<KnownClaims> {
    const writes = this.#writes
    const read = new KnownClaims(await this.#repository.all())
    if (writes === this.#writes) this.#known = read
    return read
  }

  async #write (write: () => Promise<void>, note: (known: KnownClaims) => void): Promise<void> {
    try {
      await write()
    } catch (error) {
      // Its answer may be lost, not the change. A refusal changes nothing.
      if (!InsufficientResources.is(error)) this.#known = undefined
      throw error
    } finally {
      this.#writes += 1
    }
    if (this.#known !== undefined) note(this.#known)
  }
}
