// Reads and writes the ingresses of one host. The only file of this plugin that uses knex.
import type { Knex } from 'knex'
import { createChanges, type Changes, type Journal, type ResourceState } from '../../core/db/changes.ts'
import { inTransaction, isDuplicate } from '../../core/db/transaction.ts'
import type { IngressRecord, IngressRule } from './record.ts'

interface Row { id: string, host_id: string, name: string, tags: string, rules: string, created_at: number | string }
interface ClaimRow { host_id: string, claim: string, ingress_id: string }

const INGRESSES = 'ingress_ingresses'
const CLAIMS = 'ingress_claims'

export class IngressRepository {
  readonly #database: Knex
  readonly #hostId: string
  readonly #changes: Changes

  constructor (database: Knex, hostId: string, journal?: Journal) {
    this.#database = database
    this.#hostId = hostId
    this.#changes = createChanges(database, journal, { resource: 'ingress', scope: 'ingress:read', list: async () => (await this.all()).map(stateOf) })
  }

  /** Of this host, oldest first. */
  async all (): Promise<IngressRecord[]> {
    const rows: Row[] = await this.#database<Row>(INGRESSES).where({ host_id: this.#hostId }).orderBy([{ column: 'created_at' }, { column: 'id' }])
    return rows.map(recordOf)
  }

  /** @param claims of hosts. @returns false when its name or one of them is taken; nothing is stored then */
  async insert (record: IngressRecord, claims: readonly string[]): Promise<boolean> {
    const { id, name, tags, rules, createdAt } = record
    try {
      await this.#changes.commit(async (trx, note) => {
        await trx<Row>(INGRESSES).insert({ id, host_id: this.#hostId, name, tags: JSON.stringify(tags), rules: JSON.stringify(rules), created_at: createdAt })
        await trx<ClaimRow>(CLAIMS).insert(claims.map((claim) => ({ host_id: this.#hostId, claim, ingress_id: id })))
        note({ action: 'created', ...stateOf(record) })
      })
      return true
    } catch (error) {
      if (isDuplicate(error)) return false
      throw error
    }
  }

  async ownerOf (claim: string): Promise<string | undefined> {
    return (await this.#database<ClaimRow>(CLAIMS).where({ host_id: this.#hostId, claim }).first())?.ingress_id
  }

  /** Returns once each change of it has ended that was begun before, such as one whose connection was lost. */
  async settle ({ id }: IngressRecord): Promise<void> {
    await inTransaction(this.#database, async (trx) => {
      await trx<Row>(INGRESSES).where({ host_id: this.#hostId, id }).forUpdate().first()
    })
  }

  async remove (record: IngressRecord): Promise<void> {
    await this.#changes.commit(async (trx, note) => {
      // The ingress first: that waits for a commit of it whose answer was lost and which is still to be done.
      if (await trx<Row>(INGRESSES).where({ host_id: this.#hostId, id: record.id }).delete() > 0) note({ action: 'deleted', ...stateOf(record) })
      await trx<ClaimRow>(CLAIMS).where({ host_id: this.#hostId, ingress_id: record.id }).delete()
    })
  }
}

function recordOf (row: Row): IngressRecord {
  const tags: Record<string, string> = JSON.parse(row.tags)
  const rules: IngressRule[] = JSON.parse(row.rules)
  return { id: row.id, name: row.name, createdAt: Number(row.created_at), tags, rules }
}

function stateOf ({ id, name, tags, rules }: IngressRecord): ResourceState {
  return { id, name, status: 'active', tags, details: { hostnames: rules.map(({ hostname }) => hostname) } }
}
