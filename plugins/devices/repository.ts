// Reads and writes the rows of the devices of one host, and decides who may have one. The only file of this plugin that uses knex.
import type { Knex } from 'knex'
import { NotFound } from '../../core/errors/common.ts'
import { createChanges, type Changes, type Journal, type ResourceState } from '../../core/db/changes.ts'
import { pageOf, rowsAlike, whereIs, whereTags, type RowOrder } from '../../core/db/page.ts'
import { isDuplicate } from '../../core/db/transaction.ts'
import type { Found, WholePage } from '../../core/http/list.ts'
import { DeviceAttached, DeviceInUse } from './errors.ts'
import { NO_GROUP, type Binding, type DeviceRecord, type DeviceType, type Mdev } from './record.ts'

interface Row {
  id: string
  host_id: string
  name: string
  name_key: string
  type: DeviceType
  pci_address: string
  vendor_id: string
  device_id: string
  iommu_group: number
  tags: string
  created_at: number | string
  instance_id: string | null
  turns: number | string
}

interface BindingRow { host_id: string, pci_address: string, instance_id: string, driver: string | null }
interface MdevRow { host_id: string, uuid: string, instance_id: string, profile: string, parent: string }

const DEVICES = 'devices_devices'
const BINDINGS = 'devices_bindings'
const MDEVS = 'devices_mdevs'
const ORDER = { columns: { created_at: 'created_at', name: 'name' }, id: 'id', tie: 'id' } as const satisfies RowOrder<string>

export interface DeviceFilter { readonly name?: string, readonly tags?: Readonly<Record<string, string>> }

export class DeviceRepository {
  readonly #database: Knex
  readonly #hostId: string
  readonly #changes: Changes

  constructor (database: Knex, hostId: string, journal?: Journal) {
    this.#database = database
    this.#hostId = hostId
    this.#changes = createChanges(database, journal, { resource: 'device', scope: 'device:read', list: async () => (await this.all()).map(stateOf) })
  }

  /** All devices of this host, oldest first. */
  async all (): Promise<DeviceRecord[]> {
    const rows: Row[] = await this.#devices().orderBy([{ column: 'created_at' }, { column: 'id' }])
    return rows.map(recordOf)
  }

  async page ({ name, tags }: DeviceFilter, page: WholePage<keyof typeof ORDER.columns>): Promise<Found<DeviceRecord>> {
    const found = await pageOf<Row, keyof typeof ORDER.columns>(() => this.#devices(), (query) => {
      if (name !== undefined) whereIs(query, 'name', name)
      whereTags(query, 'tags', tags)
      return { isNarrow: name !== undefined }
    }, ORDER, page)
    return { ...found, items: found.items.map(recordOf) }
  }

  /** The devices that a text may mean. */
  async alike (text: string): Promise<DeviceRecord[]> {
    return (await rowsAlike<Row>(() => this.#devices(), text, { id: 'id', name: 'name' })).map(recordOf)
  }

  /** `undefined` when the record was stored, else which value is taken. A name is unique on all hosts, whatever its case. */
  async insert (record: DeviceRecord): Promise<'name' | 'address' | undefined> {
    const { id, name, type, pciAddress, vendorId, deviceId, iommuGroup, tags, createdAt, instanceId } = record
    try {
      await this.#changes.commit(async (trx, note) => {
        await trx<Row>(DEVICES).insert({
          id, host_id: this.#hostId, name, name_key: name.toLowerCase(), type, pci_address: pciAddress, vendor_id: vendorId, device_id: deviceId, iommu_group: iommuGroup,
          tags: JSON.stringify(tags), created_at: createdAt, instance_id: instanceId, turns: 0
        })
        note({ action: 'created', ...stateOf(record) })
      })
      return undefined
    } catch (error) {
      if (!isDuplicate(error)) throw error
      return await this.#devices().where({ pci_address: pciAddress }).first() === undefined ? 'name' : 'address'
    }
  }

  /** @throws not_found, in_use */
  async remove (id: string): Promise<void> {
    await this.#changes.commit(async (trx, note) => {
      const row: Row | undefined = await this.#devices(trx).where({ id }).first()
      if (row === undefined) throw NotFound('device', id)
      if (await this.#devices(trx).where({ id }).whereNull('instance_id').delete() === 0) throw DeviceAttached(row.name, row.instance_id ?? 'that is being deleted')
      note({ action: 'deleted', ...stateOf(recordOf(row)) })
    })
  }

  async setGroup (id: string, iommuGroup: number): Promise<void> {
    await this.#devices().where({ id }).update({ iommu_group: iommuGroup })
  }

  /** Attaches all devices or none. Those that the instance has already stay its own. @throws not_found, device_in_use */
  async attach (instanceId: string, ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    const known: Row[] = await this.#devices().whereIn('id', [...ids])
    const groups = [...new Set(known.map((row) => row.iommu_group))].sort((a, b) => a - b)
    await this.#changes.commit(async (trx, note) => {
      const wanted = await this.#lock(trx, groups, ids)
      for (const row of wanted) {
        const { id, name, iommu_group: group } = row
        // All devices of one group have one owner: they are functions of one device.
        const rows: Row[] = await this.#devices(trx).where(group === NO_GROUP ? { id } : { iommu_group: group }).whereNotNull('instance_id')
        const other = rows.find((each) => each.id === id && each.instance_id !== instanceId) ?? rows.find((each) => each.instance_id !== instanceId)
        if (other !== undefined) throw DeviceInUse(name, other.id === id ? `it is attached to instance ${other.instance_id ?? ''}` : `${other.name}, which is a part of the same device, is attached to instance ${other.instance_id ?? ''}`)
        await this.#devices(trx).where({ id }).update({ instance_id: instanceId })
        if (row.instance_id === null) note({ action: 'updated', ...stateOf(recordOf({ ...row, instance_id: instanceId })) })
      }
    })
  }

  async detach (instanceId: string): Promise<void> {
    await this.#changes.commit(async (trx, note) => {
      const rows: Row[] = await this.#devices(trx).where({ instance_id: instanceId }).orderBy('id').forUpdate()
      if (rows.length === 0) return
      await this.#devices(trx).where({ instance_id: instanceId }).update({ instance_id: null })
      for (const row of rows) note({ action: 'updated', ...stateOf(recordOf({ ...row, instance_id: null })) })
    })
  }

  /** For an instance that is about to have the functions at these addresses, with all that is to be given back of them. @throws device_in_use when another one has any of them */
  async requireNoOther (instanceId: string, addresses: readonly string[]): Promise<void> {
    const other: Row | undefined = await this.#devices().whereIn('pci_address', [...addresses]).whereNotNull('instance_id').whereNot({ instance_id: instanceId }).orderBy('pci_address').first()
    if (other !== undefined) throw DeviceInUse(other.name, `it is attached to instance ${other.instance_id ?? ''}`)
  }

  async bindings (): Promise<Binding[]> {
    const rows: BindingRow[] = await this.#bindings().orderBy('pci_address')
    return rows.map(({ pci_address: pciAddress, instance_id: instanceId, driver }) => ({ pciAddress, instanceId, driver }))
  }

  /** A stored driver is not replaced: a function that was taken has another driver now. */
  async addBinding ({ pciAddress, instanceId, driver }: Binding): Promise<void> {
    const row: BindingRow = { host_id: this.#hostId, pci_address: pciAddress, instance_id: instanceId, driver }
    await this.#database<BindingRow>(BINDINGS).insert(row).onConflict(['host_id', 'pci_address']).merge(['instance_id'])
  }

  /** Does nothing when there is none. */
  async moveBinding (pciAddress: string, instanceId: string): Promise<void> {
    await this.#bindings().where({ pci_address: pciAddress }).update({ instance_id: instanceId })
  }

  async removeBinding (pciAddress: string): Promise<void> {
    await this.#bindings().where({ pci_address: pciAddress }).delete()
  }

  async mdevs (): Promise<Mdev[]> {
    const rows: MdevRow[] = await this.#mdevs().orderBy('uuid')
    return rows.map(({ uuid, instance_id: instanceId, profile, parent }) => ({ uuid, instanceId, profile, parent }))
  }

  async putMdev ({ uuid, instanceId, profile, parent }: Mdev): Promise<void> {
    const row: MdevRow = { host_id: this.#hostId, uuid, instance_id: instanceId, profile, parent }
    await this.#database<MdevRow>(MDEVS).insert(row).onConflict('uuid').merge(['parent'])
  }

  async removeMdev (uuid: string): Promise<void> {
    await this.#mdevs().where({ uuid }).delete()
  }

  /** Returns the rows, in one order. The first statement is a write, which takes the lock on both databases: from here on, callers that want devices of one group come one after the other. */
  async #lock (trx: Knex.Transaction, groups: readonly number[], ids: readonly string[]): Promise<Row[]> {
    for (const group of groups) await this.#devices(trx).where({ iommu_group: group }).increment('turns', 1)
    const rows: Row[] = await this.#devices(trx).whereIn('id', [...ids]).orderBy('id')
    const missing = ids.find((id) => !rows.some((row) => row.id === id))
    if (missing !== undefined) throw NotFound('device', missing)
    return rows
  }

  #devices (db: Knex = this.#database): Knex.QueryBuilder<Row, Row[]> {
    return db<Row>(DEVICES).where({ host_id: this.#hostId })
  }

  #bindings (): Knex.QueryBuilder<BindingRow, BindingRow[]> {
    return this.#database<BindingRow>(BINDINGS).where({ host_id: this.#hostId })
  }

  #mdevs (): Knex.QueryBuilder<MdevRow, MdevRow[]> {
    return this.#database<MdevRow>(MDEVS).where({ host_id: this.#hostId })
  }
}

function stateOf ({ id, name, type, pciAddress, tags, instanceId }: DeviceRecord): ResourceState {
  return { id, name, status: instanceId === null ? 'available' : 'attached', tags, details: { type, pci_address: pciAddress, attached_to: instanceId } }
}

function recordOf (row: Row): DeviceRecord {
  const tags: Record<string, string> = JSON.parse(row.tags)
  return {
    id: row.id,
    name: row.name,
    type: row.type,
    pciAddress: row.pci_address,
    vendorId: row.vendor_id,
    deviceId: row.device_id,
    iommuGroup: row.iommu_group,
    tags,
    createdAt: Number(row.created_at),
    instanceId: row.instance_id
  }
}
