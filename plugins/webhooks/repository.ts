// Reads and writes the rows of the webhooks of one host. The only file of this plugin that uses knex.
import type { Knex } from 'knex'
import { createChanges, type Changes, type Journal, type ResourceState } from '../../core/db/changes.ts'
import { inTransaction } from '../../core/db/transaction.ts'
import { pageOf, rowsAlike, type RowOrder } from '../../core/db/page.ts'
import type { Found, WholePage } from '../../core/http/list.ts'
import type { Progress, Settings, WebhookRecord, WebhookStatus } from './record.ts'

interface Row {
  number: number | string
  id: string
  host_id: string
  url: string
  filter: string
  secret: string
  key_id: string
  enabled: number
  status: WebhookStatus
  position: number | string
  attempts: number
  error: string | null
  failed_at: number | string | null
  delivered_id: number | string | null
  delivered_at: number | string | null
  created_at: number | string
}

const TABLE = 'webhooks_webhooks'
const ORDER = { columns: { created_at: 'number', status: 'status' }, id: 'id', tie: 'number' } as const satisfies RowOrder<string>
/** the kind of resource of its events */
export const RESOURCE = 'webhook'

export class WebhookRepository {
  readonly #database: Knex
  readonly #hostId: string
  readonly #changes: Changes

  constructor (database: Knex, hostId: string, journal: Journal) {
    this.#database = database
    this.#hostId = hostId
    this.#changes = createChanges(database, journal, { resource: RESOURCE, scope: 'webhook:read', list: async () => (await this.all()).map(stateOf) })
  }

  /** Oldest first. */
  async all (): Promise<WebhookRecord[]> {
    const rows: Row[] = await this.#rows().orderBy('number')
    return rows.map(recordOf)
  }

  async page ({ status }: { readonly status?: WebhookStatus }, page: WholePage<keyof typeof ORDER.columns>): Promise<Found<WebhookRecord>> {
    const found = await pageOf<Row, keyof typeof ORDER.columns>(() => this.#rows(), (query) => {
      if (status !== undefined) query.where({ status })
      return { isNarrow: false }
    }, ORDER, page)
    return { ...found, items: found.items.map(recordOf) }
  }

  /** The webhooks that a text may mean. */
  async alike (text: string): Promise<WebhookRecord[]> {
    return (await rowsAlike<Row>(() => this.#rows(), text, { id: 'id' })).map(recordOf)
  }

  async find (id: string): Promise<WebhookRecord | undefined> {
    const row: Row | undefined = await this.#rows().where({ id }).first()
    // MySQL ignores case when it compares texts.
    return row === undefined || row.id !== id ? undefined : recordOf(row)
  }

  /** The webhook as it is once each change has ended that was begun before, such as one whose connection was lost. */
  async settled (id: string): Promise<WebhookRecord | undefined> {
    return await inTransaction(this.#database, async (trx) => {
      const row: Row | undefined = await this.#rows(trx).where({ id }).forUpdate().first()
      return row === undefined ? undefined : recordOf(row)
    })
  }

  async insert (record: WebhookRecord): Promise<void> {
    await this.#changes.commit(async (trx, note) => {
      await trx<Row>(TABLE).insert({ ...columnsOf(record), id: record.id, host_id: this.#hostId, secret: record.sealedSecret, created_at: record.createdAt })
      note({ action: 'created', ...stateOf(record) })
    })
  }

  /** Stores changed fields. Writes an event when GET /events shows them. */
  async update (before: WebhookRecord, change: Partial<Settings & Progress>): Promise<WebhookRecord> {
    const record = { ...before, ...change }
    const isTold = JSON.stringify(stateOf(before)) !== JSON.stringify(stateOf(record))
    await this.#changes.commit(async (trx, note) => {
      const count = await this.#rows(trx).where({ id: record.id }).update(columnsOf(record))
      if (count > 0 && isTold) note({ action: 'updated', ...stateOf(record) })
    })
    return record
  }

  async remove (record: WebhookRecord): Promise<void> {
    await this.#changes.commit(async (trx, note) => {
      if (await this.#rows(trx).where({ id: record.id }).delete() > 0) note({ action: 'deleted', ...stateOf(record) })
    })
  }

  /** The number of webhooks with each status. */
  async counts (): Promise<ReadonlyMap<WebhookStatus, number>> {
    const rows: { status: WebhookStatus, count: number | string }[] = await this.#database(TABLE).where({ host_id: this.#hostId }).groupBy('status').select('status').count({ count: '*' })
    return new Map(rows.map(({ status, count }) => [status, Number(count)]))
  }

  #rows (db: Knex = this.#database): Knex.QueryBuilder<Row, Row[]> {
    return db<Row>(TABLE).where({ host_id: this.#hostId })
  }
}

/** Without the URL, which may be a secret by itself. */
function stateOf ({ id, status, isEnabled, error }: WebhookRecord): ResourceState {
  return { id, name: null, status, tags: {}, details: { enabled: isEnabled, error } }
}

function columnsOf (record: WebhookRecord): Partial<Row> {
  return {
    url: record.url,
    filter: JSON.stringify(record.filter),
    key_id: record.keyId,
    enabled: record.isEnabled ? 1 : 0,
    status: record.status,
    position: record.position,
    attempts: record.attempts,
    error: record.error,
    failed_at: record.failedAt,
    delivered_id: record.deliveredId,
    delivered_at: record.deliveredAt
  }
}

function recordOf (row: Row): WebhookRecord {
  return {
    id: row.id,
    url: row.url,
    filter: JSON.parse(row.filter),
    sealedSecret: row.secret,
    keyId: row.key_id,
    isEnabled: row.enabled !== 0,
    status: row.status,
    position: Number(row.position),
    attempts: row.attempts,
    error: row.error,
    failedAt: numberOf(row.failed_at),
    deliveredId: numberOf(row.delivered_id),
    deliveredAt: numberOf(row.delivered_at),
    createdAt: Number(row.created_at)
  }
}

function numberOf (value: number | string | null): number | null {
  return value === null ? null : Number(value)
}
