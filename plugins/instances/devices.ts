// Rules of the devices of the host that an instance has for itself: what a request asks for, and what becomes of them in a copy. parts/devices.ts gives them to it.
import { randomUUID } from 'node:crypto'
import type { HypervisorDriver } from '../../core/library/hypervisor.ts'
import { InvalidState, PluginDisabled } from '../../core/errors/common.ts'
import type { DeviceService } from '../devices/contract.ts'
import type { BaseContext } from './context.ts'
import { FieldUnsupported } from './errors.ts'
import type { InstanceRecord, InstanceSpec } from './record.ts'
import type { CreateInstance } from './schemas.ts'

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

/** @throws PluginDisabled: an instance may have been created while the plugin was there */
export function requireDevices ({ devices }: BaseContext): DeviceService {
  if (devices === undefined) throw PluginDisabled('devices', 'devices')
  return devices
}
