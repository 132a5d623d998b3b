// The devices of this host as the routes show them: those that exist, and those that are registered.
import { createId } from '@paralleldrive/cuid2'
import { wantedPage, type Found } from '../../core/http/list.ts'
import { lookupStored } from '../../core/http/lookup.ts'
import { nameOf, normaliseAddress } from './address.ts'
import { AddressTaken, DeviceNotFound, InvalidName, InvalidPciAddress, NameTaken, NotAssignable } from './errors.ts'
import { assignable } from './host/group.ts'
import type { PciNames } from './host/names.ts'
import { readDevice, readDevices, type PciDevice } from './host/pci.ts'
import type { Sysfs } from './host/sysfs.ts'
import type { DeviceRecord } from './record.ts'
import type { DeviceRepository } from './repository.ts'
import type { AvailableDevice, CreateDevice, DeviceView, ListDevicesQuery } from './schemas.ts'
import { availableView, deviceView } from './view.ts'

/** A device that a caller names. */
export type WantedDevice = Omit<CreateDevice, 'pci_address'> & { readonly pciAddress: string }

export interface DevicesOptions {
  readonly sysfs: Sysfs
  readonly repository: DeviceRepository
  readonly names: () => Promise<PciNames>
}

const NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]+$/
const MAX_NAME = 63
export const LOOKUP = { what: 'device', byName: true } as const

export class Devices {
  readonly #options: DevicesOptions

  constructor (options: DevicesOptions) {
    this.#options = options
  }

  /** The devices that could be given to an instance, by address. */
  async available (): Promise<AvailableDevice[]> {
    const { sysfs } = this.#options
    const [devices, names] = await Promise.all([readDevices(sysfs), this.#options.names()])
    const found = await Promise.all(devices.map(async (device) => await isAssignable(sysfs, device) ? [availableView(device, names)] : []))
    return found.flat()
  }

  async register ({ pciAddress: asked, name: wanted, tags = {} }: WantedDevice): Promise<DeviceView> {
    const { repository, sysfs } = this.#options
    const address = normaliseAddress(asked)
    if (address === undefined) throw InvalidPciAddress(asked)
    const name = wanted ?? nameOf(address)
    if (!NAME.test(name) || name.length > MAX_NAME) throw InvalidName(`must have 2 to ${MAX_NAME} letters, digits, dots, dashes or underscores, and begin with a letter or digit`)
    const device = await readDevice(sysfs, address)
    if (device === undefined) throw DeviceNotFound(address)
    await assignable(sysfs, device)
    const record = recordFor(device, name, tags)
    const taken = await repository.insert(record)
    if (taken === 'name') throw NameTaken(name)
    if (taken === 'address') throw AddressTaken(address, (await repository.all()).find(({ pciAddress }) => pciAddress === address)?.name ?? 'another')
    return deviceView(record, device)
  }

  /** @throws invalid_request */
  async list ({ name, tags, ...page }: ListDevicesQuery): Promise<Found<DeviceView>> {
    const found = await this.#options.repository.page({ ...name === undefined ? {} : { name }, ...tags === undefined ? {} : { tags } }, wantedPage(page))
    return { ...found, items: await Promise.all(found.items.map(async (record) => await this.#view(record))) }
  }

  /** By id, else by name. @throws not_found */
  async get (ref: string): Promise<DeviceView> {
    return await this.#view(await lookupStored(this.#options.repository, ref, LOOKUP))
  }

  /** @throws not_found, in_use */
  async unregister (ref: string): Promise<void> {
    const { repository } = this.#options
    await repository.remove((await lookupStored(repository, ref, LOOKUP)).id)
  }

  async #view (record: DeviceRecord): Promise<DeviceView> {
    return deviceView(record, await readDevice(this.#options.sysfs, record.pciAddress))
  }
}

async function isAssignable (sysfs: Sysfs, device: PciDevice): Promise<boolean> {
  try {
    await assignable(sysfs, device)
    return true
  } catch (error) {
    if (NotAssignable.is(error)) return false
    throw error
  }
}

function recordFor ({ address, type, vendorId, deviceId, iommuGroup = 0 }: PciDevice, name: string, tags: Readonly<Record<string, string>>): DeviceRecord {
  return { id: createId(), name, type, pciAddress: address, vendorId, deviceId, iommuGroup, tags, createdAt: Date.now(), instanceId: null }
}
