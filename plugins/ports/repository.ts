// Reads and writes the rows of the published ports of one host. The only file of this plugin that uses knex.
import type { Knex } from 'knex'
import { createChanges, type Changes, type Journal, type ResourceState } from '../../core/db/changes.ts'
import { isDuplicate } from '../../core/db/transaction.ts'
import { placeText, type Protocol, type PublishedPort } from './record.ts'

interface Row {
  id: string
  host_id: string
  instance_id: string
  protocol: Protocol
  address: string
  host_port: number
  instance_port: number
  created_at: number | string
}

const PORTS = 'ports_ports'

export class PortRepository {
  readonly #database: Knex
  readonly #hostId: string
  readonly #changes: Changes

  constructor (database: Knex, hostId: string, journal?: Journal) {
    this.#database = database
    this.#hostId = hostId
    this.#changes = createChanges(database, journal, { resource: 'port', scope: 'instance:read', list: async () => (await this.all()).map(stateOf) })
  }

  /** Of this host, oldest first. */
  async all (): Promise<PublishedPort[]> {
    const rows: Row[] = await this.#rows().orderBy([{ column: 'created_at' }, { column: 'id' }])
    return rows.map(portOf)
  }

  /** All or none. False when a place is taken. */
  async insert (ports: readonly PublishedPort[]): Promise<boolean> {
    try {
      await this.#changes.commit(async (trx, note) => {
        await trx<Row>(PORTS).insert(ports.map(({ id, instanceId, protocol, address, hostPort, instancePort, createdAt }) => (
          { id, host_id: this.#hostId, instance_id: instanceId, protocol, address, host_port: hostPort, instance_port: instancePort, created_at: createdAt })))
        for (const port of ports) note({ action: 'created', ...stateOf(port) })
      })
      return true
    } catch (error) {
      if (isDuplicate(error)) return false
      throw error
    }
  }

  async remove (ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    await this.#changes.commit(async (trx, note) => {
      // Waits for a commit of these rows whose answer was lost and which is still to be done.
      const rows: Row[] = await this.#rows(trx).whereIn('id', [...ids]).forUpdate()
      await this.#rows(trx).whereIn('id', rows.map(({ id }) => id)).delete()
      for (const row of rows) note({ action: 'deleted', ...stateOf(portOf(row)) })
    })
  }

  #rows (database: Knex = this.#database): Knex.QueryBuilder<Row, Row[]> {
    return database<Row>(PORTS).where({ host_id: this.#hostId })
  }
}

function portOf (row: Row): PublishedPort {
  return { id: row.id, instanceId: row.instance_id, protocol: row.protocol, address: row.address, hostPort: row.host_port, instancePort: row.instance_port, createdAt: Number(row.created_at) }
}

function stateOf (port: PublishedPort): ResourceState {
  const { id, instanceId, protocol, address, hostPort, instancePort } = port
  return { id, name: placeText(port), status: 'active', tags: {}, details: { instance_id: instanceId, protocol, address, host_port: hostPort, instance_port: instancePort } }
}
