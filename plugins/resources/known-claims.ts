// The claims of one host in memory, with what an overview needs of them: those of instances in order, and the sums. Both are made for the first overview after a change.
import type { ResourceClaim } from '../instances/room/contract.ts'
import { totalOf, type Kind, type Totals } from './repository.ts'

export class KnownClaims {
  readonly #claims: Readonly<Record<Kind, Map<string, ResourceClaim>>> = { instance: new Map(), volume: new Map() }
  /** undefined after an instance came or went */
  #ids: readonly string[] | undefined
  /** these two are undefined after any change */
  #instances: readonly ResourceClaim[] | undefined
  #totals: Totals | undefined

  constructor (claims: readonly ResourceClaim[]) {
    for (const claim of claims) this.put(claim)
  }

  put (claim: ResourceClaim): void {
    const { kind, id } = claim
    if (kind === 'instance' && !this.#claims.instance.has(id)) this.#ids = undefined
    this.#claims[kind].set(id, claim)
    this.#changed(kind)
  }

  rest (id: string): void {
    const claim = this.#claims.instance.get(id)
    if (claim !== undefined) this.put({ ...claim, active: false })
  }

  shrink (id: string, diskBytes: number): void {
    const claim = this.#claims.instance.get(id)
    if (claim !== undefined) this.put({ ...claim, diskBytes })
  }

  remove (kind: Kind, id: string): void {
    if (!this.#claims[kind].delete(id)) return
    if (kind === 'instance') this.#ids = undefined
    this.#changed(kind)
  }

  replaceAll (kind: Kind, claims: readonly ResourceClaim[]): void {
    for (const id of [...this.#claims[kind].keys()]) this.remove(kind, id)
    for (const claim of claims) this.put(claim)
  }

  /** By their ids. The same array for as long as none of them changes. */
  get instances (): readonly ResourceClaim[] {
    const { instance: claims } = this.#claims
    this.#ids ??= [...claims.keys()].sort()
    this.#instances ??= this.#ids.flatMap((id) => claims.get(id) ?? [])
    return this.#instances
  }

  /** Of instances and volumes. */
  get totals (): Totals {
    this.#totals ??= totalOf([...this.#claims.instance.values(), ...this.#claims.volume.values()])
    return this.#totals
  }

  #changed (kind: Kind): void {
    this.#totals = undefined
    if (kind === 'instance') this.#instances = undefined
  }
}
