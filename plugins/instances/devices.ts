// Devices of the host that an instance has for itself, for the operations: its own for as long as it has a row, and within reach of its VM for as long as it has one.
import { randomUUID } from 'node:crypto'
import type { HypervisorDriver, VmHostDevice } from '../../core/contracts/hypervisor.ts'
import { InvalidState, PluginDisabled } from '../../core/errors/common.ts'
import { createUndo } from '../../core/undo.ts'
import type { DeviceClaim, DeviceService } from '../devices/contract.ts'
import { identityOf, type BaseContext, type Context } from './context.ts'
import { FieldUnsupported } from './errors.ts'
import { releaseAddress } from './network.ts'
import type { InstanceRecord, InstanceSpec } from './record.ts'
import { releaseRoom } from './resources.ts'
import type { CreateInstance } from './schemas.ts'
import { releaseVolumes } from './volumes/claims.ts'

type Owner = Pick<InstanceRecord, 'id' | 'spec'>

/** What the request asks for; devices as the caller calls them, until `resolveDevices`. */
export function devicesIn ({ devices = [], gpu }: CreateInstance): Pick<InstanceSpec, 'devices' | 'gpu'> {
  return {
    ...(devices.length === 0 ? {} : { devices }),
    ...(gpu?.profile === undefined ? {} : { gpu: { profile: gpu.profile, mdevUuid: randomUUID() } })
  }
}

/** @throws FieldUnsupported naming the field that the hypervisor can do nothing with */
export function checkDevices (spec: Pick<InstanceSpec, 'devices' | 'gpu' | 'hypervisor'>, features: HypervisorDriver['features']): void {
  if (hasDevices(spec) && features?.includes('host-devices') !== true) throw FieldUnsupported(spec.devices === undefined ? 'gpu' : 'devices', spec.hypervisor)
}

export function hasDevices ({ devices, gpu }: Pick<InstanceSpec, 'devices' | 'gpu'>): boolean {
  return devices !== undefined || gpu !== undefined
}

/** The spec with ids in place of what the caller calls the devices. @throws not_found, invalid_request */
export async function resolveDevices (context: BaseContext, spec: InstanceSpec): Promise<InstanceSpec> {
  return spec.devices === undefined ? spec : { ...spec, devices: await requireDevices(context).resolve(spec.devices) }
}

/** Gives a new row its devices; the row, and what it has besides, goes again when one of them cannot be had. */
export async function withDevices (context: Context, record: InstanceRecord): Promise<InstanceRecord> {
  if (!hasDevices(record.spec)) return record
  const undo = createUndo()
  undo.add(async () => { await context.repository.remove(record.id) })
  undo.add(async () => { await releaseAddress(context, record) })
  undo.add(async () => { await releaseRoom(context, record.id) })
  undo.add(async () => { await releaseVolumes(context, record) })
  try {
    await requireDevices(context).attach(record.id, claimOf(record.spec))
    return record
  } catch (error) {
    for (const failure of await undo.run()) context.log.error({ err: failure, instance: record.id }, 'the row of an instance without its devices could not be removed')
    throw error
  }
}

/** The devices of an instance, ready for its VM. */
export async function hostDevices (context: BaseContext, record: Owner & Pick<InstanceRecord, 'slot'>): Promise<readonly VmHostDevice[]> {
  if (!hasDevices(record.spec)) return []
  return await requireDevices(context).open(record.id, claimOf(record.spec), identityOf(context, record))
}

/** Runs `launch` on devices that were made ready for it, and puts them out of reach again when it fails. */
export async function closingDevices<T> (context: BaseContext, owner: Owner, launch: () => Promise<T>): Promise<T> {
  try {
    return await launch()
  } catch (error) {
    await closeDevices(context, owner)
    throw error
  }
}

/** Puts the devices out of reach of a VM that has ended. Never rejects: nobody runs as its user any more, and the next VM's start sets it right. */
export async function closeDevices ({ devices, log }: BaseContext, { id, spec }: Owner): Promise<void> {
  if (!hasDevices(spec)) return
  try {
    await devices?.close(id)
  } catch (error) {
    log.error({ err: error, instance: id }, 'the devices of a VM that has ended are still within reach of its user')
  }
}

/** Gives all devices back to the host; the VM must have ended. Whoever removes a row does this before. Idempotent. */
export async function releaseDevices ({ devices }: BaseContext, { id, spec }: Owner): Promise<void> {
  if (hasDevices(spec)) await devices?.release(id)
}

/** At the start of the server, once VMs that are nobody's have ended: nobody has a device who has no row. Never rejects. */
export async function retainDevices ({ devices, log }: BaseContext, records: readonly InstanceRecord[]): Promise<void> {
  try {
    await devices?.retainOnly(new Set(records.map(({ id }) => id)))
  } catch (error) {
    log.error({ err: error }, 'devices of instances that are no more could not be given back')
  }
}

/** The state of a device is in the device: no memory image can hold it. @throws invalid_state */
export function requireNoDevices (call: string, { name, spec }: Pick<InstanceRecord, 'name' | 'spec'>): void {
  if (hasDevices(spec)) throw InvalidState(`${call}: instance ${name} has ${spec.devices === undefined ? 'a vGPU' : 'a device'} of the host attached, whose state cannot be saved; stop the instance first`)
}

/** The spec for an instance that is made of a copy: it takes the same devices, if nobody has them, and a share of a GPU of its own. */
export function devicesForCopy (spec: InstanceSpec): InstanceSpec {
  return spec.gpu === undefined ? spec : { ...spec, gpu: { ...spec.gpu, mdevUuid: randomUUID() } }
}

/** The spec of an instance that is taken back to a copy of it: it keeps the devices that it has now. */
export function devicesForReplacement ({ devices, gpu }: InstanceSpec, then: InstanceSpec): InstanceSpec {
  const { devices: _devices, gpu: _gpu, ...others } = then
  return { ...others, ...(devices === undefined ? {} : { devices }), ...(gpu === undefined ? {} : { gpu }) }
}

function claimOf ({ devices = [], gpu }: InstanceSpec): DeviceClaim {
  return { deviceIds: devices, ...(gpu === undefined ? {} : { gpu }) }
}

/** @throws PluginDisabled: an instance may have been created while the plugin was there */
function requireDevices ({ devices }: BaseContext): DeviceService {
  if (devices === undefined) throw PluginDisabled('devices', 'devices')
  return devices
}
