// How a plugin reports its changes: each change of a row is noted in the same transaction, so the note exists exactly if the change does.
import type { Knex } from 'knex'
import { createLine } from './line.ts'
import { inTransaction } from './transaction.ts'

/** What may be published about a resource. It holds no secrets, since it is sent to other servers, too. */
export interface ResourceState {
  /** its id in the API */
  readonly id: string
  readonly name: string | null
  readonly status: string
  readonly tags: Readonly<Record<string, string>>
  /** further facts, with names in snake case as in the API */
  readonly details?: Readonly<Record<string, unknown>>
}

export type ChangeAction = 'created' | 'updated' | 'deleted'

export interface Change extends ResourceState { readonly action: ChangeAction }

/** A kind of resource that changes. */
export interface ResourceKind {
  /** the first part of event names: `volume` for `volume.created` */
  readonly resource: string
  /** the scope that a key needs to receive its events */
  readonly scope: string
  /** Whether a state is composed of several rows. Then changes run one after the other, since two at the same time would not see each other's. */
  readonly isComposed?: boolean
  /** all resources of this kind, in the form in which the API lists them */
  list (): Promise<readonly ResourceState[]>
}

/** The service `journal`, provided by the plugin events. */
export interface Journal {
  /** Registers a kind; to be called once, before its first change. */
  know (kind: ResourceKind): void
  /** Stores changes in a transaction; listeners receive them once it is committed. */
  write (trx: Knex.Transaction, kind: ResourceKind, changes: readonly Change[]): Promise<void>
  /** Tells the current listeners about the progress of something. It is stored nowhere. */
  progress (kind: ResourceKind, state: ResourceState): void
}

declare module '../plugins/manifest.ts' {
  interface Cradle {
    readonly journal: Journal
  }
}

export type Note = (change: Change) => void

export interface Changes {
  /** Runs `work` in one transaction, as `inTransaction` does, and stores the changes that it notes. */
  commit<T> (work: (trx: Knex.Transaction, note: Note) => Promise<T>): Promise<T>
  progress (state: ResourceState): void
}

/** @param journal absent: changes are not stored, and nobody hears that some are missing; a plugin gives `absentJournal` where there is none */
export function createChanges (database: Knex, journal: Journal | undefined, kind: ResourceKind): Changes {
  journal?.know(kind)
  const inLine = createLine()
  return {
    async commit (work) {
      const commit = async (): ReturnType<typeof work> => await inTransaction(database, async (trx) => {
        const noted: Change[] = []
        const result = await work(trx, (change) => { noted.push(change) })
        if (noted.length > 0) await journal?.write(trx, kind, noted)
        return result
      })
      return kind.isComposed === true ? await inLine(commit) : await commit()
    },
    progress (state) { journal?.progress(kind, state) }
  }
}
