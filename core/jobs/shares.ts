// Limits how much unfinished work each API key may have, so that no key keeps all others waiting, and how much there may be in all.
import { countedFor } from '../auth/counted-for.ts'
import type { ApiKeyPrincipal } from '../contracts/services.ts'

/** An API key; `null` for a caller that needs none. */
export type Owner = Pick<ApiKeyPrincipal, 'id' | 'name' | 'owner'> | null

export interface SharesOptions {
  readonly perOwner: number
  readonly inAll: number
  /** Whether work that was begun is over. Called only when a share is used up. */
  readonly isOver: (id: string) => Promise<boolean>
  /** Makes the error for a caller that asks for more. @param whose `the key "ci"`, or `this server` */
  readonly refuse: (whose: string, most: number) => Error
}

export interface Shares {
  /** @throws the error of `refuse` */
  check (owner: Owner): Promise<void>
  /** Begins a piece of work, which counts for its owner until it is over. @throws the error of `refuse`, before the work begins */
  begin<T> (owner: Owner, begin: () => Promise<T>, idOf: (begun: T) => string): Promise<T>
  /** Counts work that an earlier server began, and this one goes on with: also beyond what its owner may have. */
  resume (owner: Owner, id: string): void
}

interface Share {
  /** work that was begun; some of it may be over */
  readonly ids: Set<string>
  /** how many pieces of work have no id yet */
  beginning: number
}

export function createShares ({ perOwner, inAll, isOver, refuse }: SharesOptions): Shares {
  const shares = new Map<string, Share>()
  const sizeOf = ({ ids, beginning }: Share): number => ids.size + beginning
  const total = (): number => [...shares.values()].reduce((sum, share) => sum + sizeOf(share), 0)

  function shareOf (owner: Owner): Share {
    const id = countedFor(owner)
    const share = shares.get(id) ?? { ids: new Set<string>(), beginning: 0 }
    shares.set(id, share)
    return share
  }

  async function forgetOver (id: string, share: Share): Promise<void> {
    for (const each of [...share.ids]) if (await isOver(each)) share.ids.delete(each)
    if (sizeOf(share) === 0) shares.delete(id)
  }

  async function forgetWhatIsOver (owner: Owner): Promise<void> {
    if (sizeOf(shareOf(owner)) >= perOwner) await forgetOver(countedFor(owner), shareOf(owner))
    if (total() >= inAll) for (const [id, share] of [...shares]) await forgetOver(id, share)
  }

  /** Synchronous, so that no other caller gets in between when the caller goes on in the same turn of the event loop. */
  function requireRoom (owner: Owner): void {
    if (sizeOf(shareOf(owner)) >= perOwner) throw refuse(`the key "${owner?.name ?? ''}"`, perOwner)
    if (total() >= inAll) throw refuse('this server', inAll)
  }

  return {
    async check (owner) {
      await forgetWhatIsOver(owner)
      requireRoom(owner)
    },
    async begin (owner, begin, idOf) {
      await forgetWhatIsOver(owner)
      requireRoom(owner)
      const share = shareOf(owner)
      share.beginning++
      try {
        const begun = await begin()
        share.ids.add(idOf(begun))
        return begun
      } finally {
        share.beginning--
      }
    },
    resume (owner, id) { shareOf(owner).ids.add(id) }
  }
}
