// The tables of the egress plugin: which VM is known to the proxy under which epoch, and the number of the last revision.
import type { Knex } from 'knex'
import { createLine } from '../../core/db/line.ts'
import { inTransaction } from '../../core/db/transaction.ts'

export interface VmRecord {
  readonly instanceId: string
  readonly address: string
  readonly epoch: string
}

interface VmRow { instance_id: string, host_id: string, address: string, epoch: string, created_at: number | string }
// MySQL's driver may give a bigint as text.
interface RevisionRow { host_id: string, revision: number | string }

const VMS = 'egress_vms'
const REVISIONS = 'egress_revisions'
/** How many numbers are reserved at once: a commit for each would block the event loop at each change. Numbers that a server does not use are skipped. */
const AT_ONCE = 100

export class EgressRepository {
  readonly #knex: Knex
  readonly #hostId: string
  readonly #now: () => number
  /** numbers that this server has reserved: the next one, and the first after them */
  #next = 0
  #end = 0
  readonly #inLine = createLine()

  constructor (knex: Knex, hostId: string, now: () => number = Date.now) {
    this.#knex = knex
    this.#hostId = hostId
    this.#now = now
  }

  /** Must be called once before the first revision. */
  async open (): Promise<void> {
    await this.#knex<RevisionRow>(REVISIONS).insert({ host_id: this.#hostId, revision: 0 }).onConflict('host_id').ignore()
  }

  async all (): Promise<VmRecord[]> {
    const rows: VmRow[] = await this.#knex<VmRow>(VMS).where({ host_id: this.#hostId })
    return rows.map((row) => ({ instanceId: row.instance_id, address: row.address, epoch: row.epoch }))
  }

  async save ({ instanceId, address, epoch }: VmRecord): Promise<void> {
    await this.#knex<VmRow>(VMS)
      .insert({ instance_id: instanceId, host_id: this.#hostId, address, epoch, created_at: this.#now() })
      .onConflict('instance_id').merge(['host_id', 'address', 'epoch', 'created_at'])
  }

  async remove (instanceId: string): Promise<void> {
    await this.#knex<VmRow>(VMS).where({ instance_id: instanceId, host_id: this.#hostId }).delete()
  }

  /**
   * A new revision number.
   * @param above the proxy's number, which may be greater than this server's when its database was restored from a backup
   */
  async nextRevision (above = 0): Promise<number> {
    // One after the other: two that reserve at the same time would get their ranges in any order.
    return await this.#inLine(async () => await this.#take(above))
  }

  async #take (above: number): Promise<number> {
    if (this.#next >= this.#end || this.#next <= above) {
      const first = await this.#reserve(above)
      this.#next = first
      this.#end = first + AT_ONCE
    }
    return this.#next++
  }

  /** @returns the first of `AT_ONCE` numbers */
  async #reserve (above: number): Promise<number> {
    return await inTransaction(this.#knex, async (trx) => {
      // Writing first takes the lock on both databases.
      await trx<RevisionRow>(REVISIONS).where({ host_id: this.#hostId }).increment('revision', AT_ONCE)
      const row: RevisionRow | undefined = await trx<RevisionRow>(REVISIONS).where({ host_id: this.#hostId }).first()
      if (row === undefined) throw new Error('the row of this host\'s revision is missing')
      const first = Number(row.revision) - AT_ONCE + 1
      if (first > above) return first
      await trx<RevisionRow>(REVISIONS).where({ host_id: this.#hostId }).update({ revision: above + AT_ONCE })
      return above + 1
    })
  }
}
