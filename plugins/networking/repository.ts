// The tables of the networking plugin: the address of each instance, and the settings of its last plug.
import type { Knex } from 'knex'
import { rowsInTurns } from '../../core/db/rows-in-turns.ts'
import { inTransaction, isDuplicate } from '../../core/db/transaction.ts'
import { addressAt, FIRST_POSITION, lastPosition, type Cidr } from './cidr.ts'
import type { EgressMode } from './contract.ts'
import { randomMac } from './names.ts'
import type { EffectiveLimits } from './settings.ts'

/** What a port was made with. */
export interface PortSpec {
  readonly egress: EgressMode
  /** `undefined`: the server's own user */
  readonly uid?: number
  readonly limits: EffectiveLimits
}

export interface AddressRecord {
  readonly instanceId: string
  readonly position: number
  readonly ip: string
  readonly mac: string
  /** of the last plug; `undefined`: never plugged */
  readonly spec?: PortSpec
  /** a change of `spec` has begun, and its end is unknown */
  readonly changing: boolean
}

interface Row {
  instance_id: string
  host_id: string
  position: number
  ip: string
  mac: string
  created_at: number | string
  egress: EgressMode | null
  // MySQL's driver may give a bigint as text
  uid: number | string | null
  download_bps: number | string | null
  upload_bps: number | string | null
  changing: number
}

interface CursorRow { host_id: string, next_position: number, turns: number }

const ADDRESSES = 'networking_addresses'
const CURSORS = 'networking_cursors'
const CHUNK = 1024
const MAC_ATTEMPTS = 5

export class AddressRepository {
  readonly #knex: Knex
  readonly #hostId: string
  readonly #cidr: Cidr
  readonly #now: () => number

  constructor (knex: Knex, hostId: string, cidr: Cidr, now: () => number = Date.now) {
    this.#knex = knex
    this.#hostId = hostId
    this.#cidr = cidr
    this.#now = now
  }

  /** Must be called once before the first `allocate`. */
  async open (): Promise<void> {
    await this.#knex<CursorRow>(CURSORS).insert({ host_id: this.#hostId, next_position: FIRST_POSITION, turns: 0 }).onConflict('host_id').ignore()
  }

  /** All addresses of this host. */
  async all (): Promise<AddressRecord[]> {
    return await rowsInTurns(() => this.#addresses().where({ host_id: this.#hostId }), 'instance_id', recordOf)
  }

  /**
   * The address of an instance, a new one if it has none; `undefined` when all are taken. The search continues where the last one ended, so that
   * a freed address is used again only after all others: nobody remembers its last owner by then.
   */
  async allocate (instanceId: string): Promise<AddressRecord | undefined> {
    return await inTransaction(this.#knex, async (trx) => {
      // Writing first takes the lock on both databases: from here on writers of this host run one after the other.
      await trx<CursorRow>(CURSORS).where({ host_id: this.#hostId }).increment('turns', 1)
      const before: Row | undefined = await this.#addresses(trx).where({ instance_id: instanceId, host_id: this.#hostId }).first()
      if (before !== undefined) return recordOf(before)
      const cursor: CursorRow | undefined = await trx<CursorRow>(CURSORS).where({ host_id: this.#hostId }).first()
      const position = await this.#freePosition(trx, cursor?.next_position ?? FIRST_POSITION)
      if (position === undefined) return undefined
      await trx<CursorRow>(CURSORS).where({ host_id: this.#hostId }).update({ next_position: position + 1 })
      return await this.#insert(trx, instanceId, position)
    })
  }

  async remove (instanceId: string): Promise<void> {
    await this.#addresses().where({ instance_id: instanceId, host_id: this.#hostId }).delete()
  }

  async saveSpec (instanceId: string, { spec: { egress, uid, limits }, changing }: { readonly spec: PortSpec, readonly changing: boolean }): Promise<void> {
    await this.#addresses().where({ instance_id: instanceId, host_id: this.#hostId }).update({
      egress, uid: uid ?? null, download_bps: limits.downloadBps ?? null, upload_bps: limits.uploadBps ?? null, changing: changing ? 1 : 0
    })
  }

  async #freePosition (trx: Knex.Transaction, from: number): Promise<number | undefined> {
    const last = lastPosition(this.#cidr)
    const start = from >= FIRST_POSITION && from <= last ? from : FIRST_POSITION
    return await this.#gap(trx, start, last) ?? await this.#gap(trx, FIRST_POSITION, start - 1)
  }

  async #gap (trx: Knex.Transaction, from: number, to: number): Promise<number | undefined> {
    for (let first = from; first <= to; first += CHUNK) {
      const last = Math.min(first + CHUNK - 1, to)
      const rows: Pick<Row, 'position'>[] = await this.#addresses(trx).select('position').where({ host_id: this.#hostId }).whereBetween('position', [first, last])
      const taken = new Set(rows.map((row) => row.position))
      for (let position = first; position <= last; position++) if (!taken.has(position)) return position
    }
    return undefined
  }

  async #insert (trx: Knex.Transaction, instanceId: string, position: number): Promise<AddressRecord> {
    const ip = addressAt(this.#cidr, position)
    for (let attempt = 1; ; attempt++) {
      const mac = randomMac()
      try {
        await this.#addresses(trx).insert({ instance_id: instanceId, host_id: this.#hostId, position, ip, mac, created_at: this.#now(), changing: 0 })
        return { instanceId, position, ip, mac, changing: false }
      } catch (error) {
        // another instance has the same MAC
        if (attempt === MAC_ATTEMPTS || !isDuplicate(error)) throw error
      }
    }
  }

  #addresses (db: Knex = this.#knex): Knex.QueryBuilder<Row, Row[]> {
    return db<Row>(ADDRESSES)
  }
}

function recordOf (row: Row): AddressRecord {
  const number = (value: number | string | null): number | undefined => value === null ? undefined : Number(value)
  const uid = number(row.uid)
  const downloadBps = number(row.download_bps)
  const uploadBps = number(row.upload_bps)
  const limits = { ...downloadBps === undefined ? {} : { downloadBps }, ...uploadBps === undefined ? {} : { uploadBps } }
  return {
    instanceId: row.instance_id,
    position: row.position,
    ip: row.ip,
    mac: row.mac,
    changing: row.changing === 1,
    ...row.egress === null ? {} : { spec: { egress: row.egress, limits, ...uid === undefined ? {} : { uid } } }
  }
}
