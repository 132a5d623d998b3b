// What this server knows of its own claims. Their rows may say less: the database may have been away when a request ended.
import { randomBytes } from 'node:crypto'
import { createLocks } from '../jobs/locks.ts'
import { ownOwner } from './idempotency-owner.ts'
import type { Claim, StoredAnswer } from './idempotency-repository.ts'

/** A claim whose answer could not be stored. */
interface Unstored { readonly claim: Claim, readonly answer: StoredAnswer }

export class OwnClaims {
  readonly hostId: string
  readonly owner: string
  readonly #locks = createLocks()
  readonly #working = new Set<string>()
  readonly #unstored = new Map<string, Unstored>()

  constructor (hostId: string) {
    this.hostId = hostId
    // several servers may be in one process
    this.owner = `${ownOwner(hostId)}|${randomBytes(6).toString('hex')}`
  }

  /** Runs `acquire`, which returns undefined when it has stored this claim. Of those with one id, one runs at a time. */
  async begin (id: string, acquire: () => Promise<Claim | undefined>): Promise<Claim | undefined> {
    return await this.#locks.hold(id, async () => {
      const known = await acquire()
      if (known === undefined) {
        this.#working.add(id)
        this.#unstored.delete(id)
      }
      return known
    })
  }

  isWorking (id: string): boolean {
    return this.#working.has(id)
  }

  /** @param answer one that could not be stored */
  end (claim: Claim, answer?: StoredAnswer): void {
    this.#working.delete(claim.id)
    if (answer !== undefined) this.#unstored.set(claim.id, { claim, answer })
  }

  unstored (id: string): StoredAnswer | undefined {
    return this.#unstored.get(id)?.answer
  }

  /** Stores what could not be stored, until that fails again. */
  async storeAll (store: (claim: Claim, answer: StoredAnswer) => Promise<void>): Promise<void> {
    for (const [id, entry] of [...this.#unstored]) {
      await store(entry.claim, entry.answer)
      if (this.#unstored.get(id) === entry) this.#unstored.delete(id)
    }
  }
}
