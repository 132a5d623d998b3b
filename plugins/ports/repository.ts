// Reads and writes the rows of the published ports of one host. The only file of this plugin that uses knex.
import type { Knex } from 'knex'
import { isDuplicate } from '../../core/db/transaction.ts'
import type { Protocol, PublishedPort } from './record.ts'

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

  constructor (database: Knex, hostId: string) {
    this.#database = database
    this.#hostId = hostId
  }

  /** Of this host, oldest first. */
  async all (): Promise<PublishedPort[]> {
    const rows: Row[] = await this.#rows().orderBy([{ column: 'created_at' }, { column: 'id' }])
    return rows.map((row) => ({
      id: row.id,
      instanceId: row.instance_id,
      protocol: row.protocol,
      address: row.address,
      hostPort: row.host_port,
      instancePort: row.instance_port,
      createdAt: Number(row.created_at)
    }))
  }

  /** All or none. False when a place is taken. */
  async insert (ports: readonly PublishedPort[]): Promise<boolean> {
    try {
      await this.#database<Row>(PORTS).insert(ports.map(({ id, instanceId, protocol, address, hostPort, instancePort, createdAt }) => (
        { id, host_id: this.#hostId, instance_id: instanceId, protocol, address, host_port: hostPort, instance_port: instancePort, created_at: createdAt })))
      return true
    } catch (error) {
      if (isDuplicate(error)) return false
      throw error
    }
  }

  async remove (ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await this.#rows().whereIn('id', [...ids]).delete()
  }

  #rows (): Knex.QueryBuilder<Row, Row[]> {
    return this.#database<Row>(PORTS).where({ host_id: this.#hostId })
  }
}
