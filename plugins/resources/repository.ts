// The claims on hosts. The only file of this plugin that uses knex.
import { isDeepStrictEqual } from 'node:util'
import type { Knex } from 'knex'
import { mapInTurns } from '../../core/jobs/in-turns.ts'
import { rowsInTurns, writeInTurns } from '../../core/db/rows-in-turns.ts'
import { inTransaction } from '../../core/db/transaction.ts'
import type { ResourceClaim } from '../instances/room/contract.ts'

export type Kind = ResourceClaim['kind']

/** The sums of all claims on one host. */
export interface Totals {
  readonly vcpus: number
  readonly memoryBytes: number
  readonly diskBytes: number
  /** the part of `diskBytes` that is writable disks of instances, which take only what is written */
  readonly overlayBytes: number
  readonly downloadBps: number
  readonly uploadBps: number
  readonly diskIoBps: number
}

interface Row {
  kind: Kind
  id: string
  host_id: string
  name: string
  active: number
  vcpus: number
  // MySQL's driver may give a bigint as text
  memory_bytes: number | string
  disk_bytes: number | string
  download_bps: number | string
  upload_bps: number | string
  disk_io_bps: number | string
}

// Columns that count only with a VM are multiplied by whether there is one.
const SUMS = [
  'SUM(active * vcpus) AS vcpus', 'SUM(active * memory_bytes) AS memory_bytes', 'SUM(disk_bytes) AS disk_bytes', "SUM(CASE WHEN kind = 'instance' THEN disk_bytes ELSE 0 END) AS overlay_bytes",
  'SUM(active * download_bps) AS download_bps',
  'SUM(active * upload_bps) AS upload_bps', 'SUM(active * disk_io_bps) AS disk_io_bps'
]
// null: there are no rows
type Sums = Record<'vcpus' | 'memory_bytes' | 'disk_bytes' | 'overlay_bytes' | 'download_bps' | 'upload_bps' | 'disk_io_bps', number | string | null>

interface TurnRow { host_id: string, turns: number }

const CLAIMS = 'resources_claims'
const TURNS = 'resources_turns'

export class ClaimRepository {
  readonly #knex: Knex
  readonly #hostId: string

  constructor (knex: Knex, hostId: string) {
    this.#knex = knex
    this.#hostId = hostId
  }

  /** To be called once before anything else. */
  async open (): Promise<void> {
    await this.#knex<TurnRow>(TURNS).insert({ host_id: this.#hostId, turns: 0 }).onConflict('host_id').ignore()
  }

  /** Claims of one kind after those of another. */
  async all (): Promise<ResourceClaim[]> {
    return [...await this.#ofKind(this.#knex, 'instance'), ...await this.#ofKind(this.#knex, 'volume')]
  }

  /**
   * Stores a claim unless `refuse` throws. `refuse` gets the sums of the host's other claims, and this claim as it was before; until the
   * claim is stored nobody else can make one.
   */
  async claim (claim: ResourceClaim, refuse: (others: Totals, before: Totals) => void): Promise<void> {
    await this.#inTurn(async (trx) => {
      const { kind, id } = claim
      const own: Row[] = await trx<Row>(CLAIMS).where({ kind, id, host_id: this.#hostId })
      const [others]: Sums[] = await trx<Row>(CLAIMS).where({ host_id: this.#hostId }).whereNot((query) => { void query.where({ kind, id }) }).select(SUMS.map((sum) => trx.raw(sum)))
      refuse(totalsOf(others), totalOf(own.map(claimOf)))
      await this.#put(trx, [claim])
    })
  }

  async totals (): Promise<Totals> {
    const [sums]: Sums[] = await this.#knex<Row>(CLAIMS).where({ host_id: this.#hostId }).select(SUMS.map((sum) => this.#knex.raw(sum)))
    return totalsOf(sums)
  }

  /** The VM of an instance has ended: what only a VM takes does not count any more. */
  async rest (id: string): Promise<void> {
    await this.#knex<Row>(CLAIMS).where({ kind: 'instance', id, host_id: this.#hostId, active: 1 }).update({ active: 0 })
  }

  /** Changes what the disks of an instance take, without asking whether there is room: they have become smaller. */
  async shrink (id: string, diskBytes: number): Promise<void> {
    await this.#knex<Row>(CLAIMS).where({ kind: 'instance', id, host_id: this.#hostId }).update({ disk_bytes: diskBytes })
  }

  async release (kind: Kind, id: string): Promise<void> {
    await this.#knex<Row>(CLAIMS).where({ kind, id, host_id: this.#hostId }).delete()
  }

  /** Replaces all claims of one kind; claims that are stored already are not written again. */
  async replaceAll (kind: Kind, claims: readonly ResourceClaim[]): Promise<void> {
    await this.#inTurn(async (trx) => {
      const wanted = new Set(claims.map(({ id }) => id))
      const stored = await this.#ofKind(trx, kind)
      const gone = stored.filter(({ id }) => !wanted.has(id)).map(({ id }) => id)
      await writeInTurns(gone, async (ids) => { await trx<Row>(CLAIMS).where({ kind, host_id: this.#hostId }).whereIn('id', ids).delete() })
      const known = new Map(stored.map((claim) => [claim.id, claim]))
      const others = await mapInTurns(claims, (claim) => isDeepStrictEqual(known.get(claim.id), claim) ? [] : [claim])
      await writeInTurns(others.flat(), async (part) => { await this.#put(trx, part) })
    })
  }

  async #ofKind (knex: Knex, kind: Kind): Promise<ResourceClaim[]> {
    return await rowsInTurns(() => knex(CLAIMS).where({ kind, host_id: this.#hostId }), 'id', claimOf)
  }

  async #inTurn (work: (trx: Knex.Transaction) => Promise<void>): Promise<void> {
    await inTransaction(this.#knex, async (trx) => {
      // The first statement is a write, which takes the lock on both databases: from here on, writers of this host come one after the other.
      await trx<TurnRow>(TURNS).where({ host_id: this.#hostId }).increment('turns', 1)
      await work(trx)
    })
  }

  async #put (trx: Knex.Transaction, claims: readonly ResourceClaim[]): Promise<void> {
    await trx<Row>(CLAIMS).insert(claims.map((claim) => rowOf(claim, this.#hostId))).onConflict(['kind', 'id']).merge()
  }
}

/** The sums of claims; what only a VM takes counts where there is a VM. */
export function totalOf (claims: readonly ResourceClaim[]): Totals {
  const total = { vcpus: 0, memoryBytes: 0, diskBytes: 0, overlayBytes: 0, downloadBps: 0, uploadBps: 0, diskIoBps: 0 }
  for (const { kind, active, vcpus, memoryBytes, diskBytes, downloadBps, uploadBps, diskIoBps } of claims) {
    total.diskBytes += diskBytes
    if (kind === 'instance') total.overlayBytes += diskBytes
    if (!active) continue
    total.vcpus += vcpus
    total.memoryBytes += memoryBytes
    total.downloadBps += downloadBps
    total.uploadBps += uploadBps
    total.diskIoBps += diskIoBps
  }
  return total
}

function totalsOf (sums: Sums | undefined): Totals {
  return {
    vcpus: Number(sums?.vcpus ?? 0),
    memoryBytes: Number(sums?.memory_bytes ?? 0),
    diskBytes: Number(sums?.disk_bytes ?? 0),
    overlayBytes: Number(sums?.overlay_bytes ?? 0),
    downloadBps: Number(sums?.download_bps ?? 0),
    uploadBps: Number(sums?.upload_bps ?? 0),
    diskIoBps: Number(sums?.disk_io_bps ?? 0)
  }
}

function claimOf (row: Row): ResourceClaim {
  return {
    kind: row.kind,
    id: row.id,
    name: row.name,
    active: row.active === 1,
    vcpus: row.vcpus,
    memoryBytes: Number(row.memory_bytes),
    diskBytes: Number(row.disk_bytes),
    downloadBps: Number(row.download_bps),
    uploadBps: Number(row.upload_bps),
    diskIoBps: Number(row.disk_io_bps)
  }
}

function rowOf ({ kind, id, name, active, vcpus, memoryBytes, diskBytes, downloadBps, uploadBps, diskIoBps }: ResourceClaim, hostId: string): Row {
  return {
    kind,
    id,
    host_id: hostId,
    name,
    active: active ? 1 : 0,
    vcpus,
    memory_bytes: memoryBytes,
    disk_bytes: diskBytes,
    download_bps: downloadBps,
    upload_bps: uploadBps,
    disk_io_bps: diskIoBps
  }
}
