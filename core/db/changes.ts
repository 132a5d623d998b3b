// How a plugin tells what it changes: each change of a row is noted in the transaction that changes it, so that the note is there exactly if the change is.
import type { Knex } from 'knex'
import { createLocks } from '../jobs/locks.ts'
import { inTransaction } from './transaction.ts'

/** What the world may know of a resource. It holds no secrets: it goes to other servers, too. */
export interface ResourceState {
  /** what the API calls it by */
  readonly id: string
  readonly name: string | null
  readonly status: string
  readonly tags: Readonly<Record<string, string>>
  /** further facts, in snake case as in the API */
  readonly details?: Readonly<Record<string, unknown>>
}

export type ChangeAction = 'created' | 'updated' | 'deleted'

export interface Change extends ResourceState { readonly action: ChangeAction }

/** A kind of resource that changes. */
export interface ResourceKind {
  /** `volume`, as in `volume.created` */
  readonly resource: string
  /** what a key needs to hear of it */
  readonly scope: string
  /** whether a state is put together of several rows: then changes are made one after the other, or two at a time would not see each other's */
  readonly isComposed?: boolean
  /** all that there are, as the API lists them */
  list (): Promise<readonly ResourceState[]>
}

/** The service `journal`: the plugin events keeps it. */
export interface Journal {
  /** Once for each kind, before its first change. */
  know (kind: ResourceKind): void
  /** Stores changes in a transaction; those who listen hear of them once it is committed. */
  write (trx: Knex.Transaction, kind: ResourceKind, changes: readonly Change[]): Promise<void>
  /** Tells those who listen right now how far something is. Stored nowhere. */
  progress (kind: ResourceKind, state: ResourceState): void
}

declare module '../plugins/manifest.ts' {
  interface Cradle {
    readonly journal: Journal
  }
}

export type Note = (change: Change) => void

export interface Changes {
  /** Runs `work` in one transaction, as `inTransaction` does, with what it notes. */
  commit<T> (work: (trx: Knex.Transaction, note: Note) => Promise<T>): Promise<T>
  progress (state: ResourceState): void
}

/** @param journal absent: nobody wants to know */
export function createChanges (database: Knex, journal: Journal | undefined, kind: ResourceKind): Changes {
  journal?.know(kind)
  const locks = createLocks()
  return {
    async commit (work) {
      const commit = async (): ReturnType<typeof work> => await inTransaction(database, async (trx) => {
        const noted: Change[] = []
        const result = await work(trx, (change) => { noted.push(change) })
        if (noted.length > 0) await journal?.write(trx, kind, noted)
        return result
      })
      return kind.isComposed === true ? await locks.hold(kind.resource, commit) : await commit()
    },
    progress (state) { journal?.progress(kind, state) }
  }
}
