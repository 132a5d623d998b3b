// Decides whose the host's devices are. Every change of the host is stored before it is made, so that it can be taken back after a crash.
import { join } from 'node:path'
import type { GpuUsage, Gpus } from '../../core/library/gpus.ts'
import type { HostCommands, Logger } from '../../core/contracts/services.ts'
import { InvalidRequest, NotFound } from '../../core/errors/common.ts'
import { BerthError } from '../../core/errors/define.ts'
import { lookup } from '../../core/http/lookup.ts'
import { createLocks } from '../../core/jobs/locks.ts'
import type { DeviceClaim, DeviceUser, OpenDevice } from './claim.ts'
import { LOOKUP } from './devices.ts'
import { NoSuchProfile, NotAssignable, ProfileUsedUp } from './errors.ts'
import { gpuUsage } from './gpus.ts'
import { bindVfio, loadVfio, restoreDriver } from './host/binding.ts'
import { KernelSilent, type PatientSysfs } from './host/deadline.ts'
import { assignable } from './host/group.ts'
import { hasMdev, isProfile, listMdevs, makeMdev, MDEV_DEVICES, readMdevTypes, removeMdev, type MdevType } from './host/mdev.ts'
import { lendNode, takeNodeBack } from './host/nodes.ts'
import { PCI_DEVICES, readDevice, VFIO_DRIVER } from './host/pci.ts'
import { NO_GROUP, type DeviceRecord, type Mdev } from './record.ts'
import type { DeviceRepository } from './repository.ts'

export interface AssignmentsOptions {
  readonly sysfs: PatientSysfs
  /** folder of the device files of groups */
  readonly nodes: string
  readonly repository: DeviceRepository
  readonly commands: HostCommands
  readonly log: Logger
}

/** The lock for changes of drivers and for making mediated devices: each of these reads what the other changes. */
const HOST = 'host'

/**
 * A device is attached to one instance from `attach` to `release`, whatever state the instance is in, and bound to vfio-pci all the while. The database decides who has it,
 * so that neither a crash nor another call can make two owners.
 */
export class Assignments implements Gpus {
  readonly #options: AssignmentsOptions
  readonly #locks = createLocks()

  constructor (options: AssignmentsOptions) {
    this.#options = options
  }

  /** The ids of devices that are given by id or name. @throws not_found naming the field `devices[n]`, invalid_request for a device that is named twice */
  async resolve (refs: readonly string[]): Promise<readonly string[]> {
    if (refs.length === 0) return []
    const records = await this.#options.repository.all()
    const ids: string[] = []
    for (const [index, ref] of refs.entries()) {
      const { id } = find(records, ref, index)
      if (ids.includes(id)) throw InvalidRequest(`devices[${index}]: the same device is in this request twice`)
      ids.push(id)
    }
    return ids
  }

  /**
   * Gives devices to an instance: all of them or none. Takes them from their drivers, and makes the mediated device.
   * @throws not_found, device_in_use, device_not_assignable, invalid_request (no GPU of the host has such a profile), insufficient_resources (none is left)
   */
  async attach (instanceId: string, claim: DeviceClaim): Promise<void> {
    await this.#locks.hold(HOST, async () => {
      const { repository } = this.#options
      await this.#refreshGroups(claim.deviceIds)
      await repository.attach(instanceId, claim.deviceIds)
      try {
        for (const record of await this.#devicesOf(instanceId)) await this.#bind(record, instanceId)
        await this.#provideMdev(instanceId, claim)
      } catch (error) {
        await this.#giveBack(instanceId)
        throw error
      }
    })
  }

  /**
   * Makes the devices of an instance ready for a VM of this user (`undefined`: the server's own), also after a restart of the host. To be called before each VM. Idempotent.
   * @returns those of `claim.deviceIds` in that order, then the mediated device
   */
  async open (instanceId: string, claim: DeviceClaim, user: DeviceUser | undefined): Promise<readonly OpenDevice[]> {
    return await this.#locks.hold(HOST, async () => {
      const { sysfs } = this.#options
      const records = await this.#devicesOf(instanceId)
      const opened: OpenDevice[] = []
      for (const id of claim.deviceIds) {
        const record = records.find((candidate) => candidate.id === id)
        if (record === undefined) throw NotFound('device', id)
        // After a restart of the host, devices are at their drivers again.
        await this.#bind(record, instanceId)
        opened.push(await this.#lend(`${PCI_DEVICES}/${record.pciAddress}`, user))
      }
      await this.#provideMdev(instanceId, claim)
      if (claim.gpu !== undefined) opened.push(await this.#lend(`${MDEV_DEVICES}/${claim.gpu.mdevUuid}`, user))
      return opened.map(({ sysfs: path }) => ({ sysfs: join(sysfs.root, path) }))
    })
  }

  /** Takes back from the VM's user what `open` gave; the VM must have ended. Idempotent. */
  async close (instanceId: string): Promise<void> {
    await this.#locks.hold(HOST, async () => { await this.#takeNodesBack(instanceId) })
  }

  /** Gives everything back: devices to their drivers; the mediated device is removed. No VM may use them. Idempotent. */
  async release (instanceId: string): Promise<void> {
    await this.#locks.hold(HOST, async () => { await this.#giveBack(instanceId) })
  }

  /** Gives back the devices of all other instances: an earlier server may have been killed in between. Makes the mediated devices again that a restart of the host has ended. For the plugin that knows the instances, at its start. */
  async retainOnly (instanceIds: ReadonlySet<string>): Promise<void> {
    const { repository, log } = this.#options
    const [devices, bindings, mdevs] = await Promise.all([repository.all(), repository.bindings(), repository.mdevs()])
    const owners = new Set([...devices.flatMap(({ instanceId }) => instanceId ?? []), ...bindings.map(({ instanceId }) => instanceId), ...mdevs.map(({ instanceId }) => instanceId)])
    for (const owner of owners) {
      if (instanceIds.has(owner)) continue
      await this.release(owner)
      log.info({ instance: owner }, 'devices of an instance that is no more are given back')
    }
    for (const mdev of mdevs) if (instanceIds.has(mdev.instanceId)) await this.#provideAgain(mdev)
  }

  /** null when the host has no GPU that an instance could have */
  async gpus (): Promise<GpuUsage | null> {
    const { sysfs, repository } = this.#options
    const [types, mdevs, there, devices] = await Promise.all([readMdevTypes(sysfs), repository.mdevs(), listMdevs(sysfs), repository.all()])
    // One that could not be made again is among those that are available.
    return gpuUsage(types, mdevs.filter(({ uuid }) => there.includes(uuid)).length, devices)
  }

  async #devicesOf (instanceId: string): Promise<DeviceRecord[]> {
    return (await this.#options.repository.all()).filter((record) => record.instanceId === instanceId)
  }

  /** The numbers of groups may change with each start of the host: those of all devices, since the database compares them with each other. */
  async #refreshGroups (claimed: readonly string[]): Promise<void> {
    const { repository, sysfs } = this.#options
    if (claimed.length === 0) return
    for (const { id, pciAddress, iommuGroup, name } of await repository.all()) {
      const now = await readDevice(sysfs, pciAddress)
      const group = now?.iommuGroup ?? NO_GROUP
      if (group !== iommuGroup) await repository.setGroup(id, group)
      if (now === undefined && claimed.includes(id)) throw NotAssignable(pciAddress, `${name} is no longer on this host`)
    }
  }

  /** Takes all functions of a device from their drivers. Idempotent. */
  async #bind ({ pciAddress, vendorId, deviceId, name }: DeviceRecord, instanceId: string): Promise<void> {
    const { commands, repository, sysfs } = this.#options
    const device = await readDevice(sysfs, pciAddress)
    if (device === undefined) throw NotAssignable(pciAddress, `${name} is no longer on this host`)
    if (device.vendorId !== vendorId || device.deviceId !== deviceId) throw NotAssignable(pciAddress, `it is ${device.vendorId}:${device.deviceId} now, and not ${vendorId}:${deviceId} that was registered as ${name}`)
    const functions = await assignable(sysfs, device)
    // Before any of them is touched: a VM may have it.
    await repository.requireNoOther(instanceId, functions.map(({ address }) => address))
    await loadVfio(sysfs, commands, pciAddress)
    for (const { address, driver } of functions) {
      if (driver === VFIO_DRIVER) {
        // It may be left from an instance that could not give it back: that duty goes with it, or the next start would take it from this one. One that somebody else has given to vfio-pci has no binding, and stays there.
        await repository.moveBinding(address, instanceId)
        continue
      }
      await repository.addBinding({ pciAddress: address, instanceId, driver: driver ?? null })
      await bindVfio(sysfs, address)
    }
  }

  /** Before anybody else gets what it was a share of, also where the instance is stopped. Never rejects. */
  async #provideAgain ({ uuid, instanceId, profile }: Mdev): Promise<void> {
    try {
      await this.#locks.hold(HOST, async () => { await this.#provideMdev(instanceId, { deviceIds: [], gpu: { profile, mdevUuid: uuid } }) })
    } catch (error) {
      this.#options.log.error({ err: error, instance: instanceId, mdev: uuid }, 'the share of a GPU that an instance has could not be made again; the next start of the instance or of the server tries it again')
    }
  }

  /** Makes the mediated device of an instance: on the GPU that it was of, else on the one with the most room. Idempotent. When this rejects, its row stays for as long as the instance. */
  async #provideMdev (instanceId: string, { gpu }: DeviceClaim): Promise<void> {
    const { repository, sysfs } = this.#options
    if (gpu === undefined || await hasMdev(sysfs, gpu.mdevUuid)) return
    const types = await readMdevTypes(sysfs)
    const fitting = types.filter((type) => isProfile(type, gpu.profile))
    if (fitting.length === 0) throw NoSuchProfile(gpu.profile, [...new Set(types.map(({ name }) => name))])
    const former = (await repository.mdevs()).find(({ uuid }) => uuid === gpu.mdevUuid)?.parent
    const preferred = ({ parent }: MdevType): number => parent === former ? 1 : 0
    const roomy = fitting.filter(({ available }) => available > 0).sort((a, b) => preferred(b) - preferred(a) || b.available - a.available)
    for (const type of roomy) if (await this.#makeMdev(instanceId, gpu, type)) return
    throw ProfileUsedUp(gpu.profile)
  }

  async #makeMdev (instanceId: string, { profile, mdevUuid: uuid }: NonNullable<DeviceClaim['gpu']>, type: MdevType): Promise<boolean> {
    const { repository, sysfs } = this.#options
    await repository.putMdev({ uuid, instanceId, profile, parent: type.parent })
    return await makeMdev(sysfs, type, uuid)
  }

  async #lend (path: string, user: DeviceUser | undefined): Promise<OpenDevice> {
    const { nodes, sysfs } = this.#options
    const group = await sysfs.target(`${path}/iommu_group`)
    if (user !== undefined && group !== undefined) await lendNode(nodes, Number(group), user)
    return { sysfs: path }
  }

  async #takeNodesBack (instanceId: string): Promise<void> {
    const { nodes, repository, sysfs } = this.#options
    const mdevs = (await repository.mdevs()).filter((mdev) => mdev.instanceId === instanceId)
    const paths = [...(await this.#devicesOf(instanceId)).map(({ pciAddress }) => `${PCI_DEVICES}/${pciAddress}`), ...mdevs.map(({ uuid }) => `${MDEV_DEVICES}/${uuid}`)]
    for (const path of paths) {
      const group = await sysfs.target(`${path}/iommu_group`)
      if (group !== undefined) await takeNodeBack(nodes, Number(group))
    }
  }

  /** What fails is tried again at the next start of the server, since its row stays. When another instance gets the device in the meantime, it is bound anew. */
  async #giveBack (instanceId: string): Promise<void> {
    const { repository, sysfs } = this.#options
    await this.#orLog(instanceId, async () => { await this.#takeNodesBack(instanceId) })
    for (const { uuid, parent } of (await repository.mdevs()).filter((mdev) => mdev.instanceId === instanceId)) {
      await this.#orLog(instanceId, async () => {
        await removeMdev(sysfs, uuid)
        if (sysfs.isSilent(parent)) throw new KernelSilent(`${parent} may still make the share ${uuid}`)
        await repository.removeMdev(uuid)
      })
    }
    for (const { pciAddress, driver } of (await repository.bindings()).filter((binding) => binding.instanceId === instanceId)) {
      await this.#orLog(instanceId, async () => {
        await restoreDriver(sysfs, pciAddress, driver)
        await repository.removeBinding(pciAddress)
      })
    }
    await repository.detach(instanceId)
  }

  async #orLog (instanceId: string, work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      this.#options.log.error({ err: error, instance: instanceId }, 'a device could not be given back to the host wholly; the next start of the server tries again')
    }
  }
}

function find (records: readonly DeviceRecord[], ref: string, index: number): DeviceRecord {
  try {
    return lookup(records, ref, LOOKUP)
  } catch (error) {
    if (error instanceof BerthError && error.kind === 'not-found') throw NotFound(`devices[${index}]: device`, ref)
    throw error
  }
}
