// Devices of the host that an instance has for itself: they are its own for as long as it has a row, and its VM can reach them for as long as it has one.
import { randomUUID } from 'node:crypto'
import type { Logger } from '../../core/contracts/services.ts'
import { InvalidState } from '../../core/errors/common.ts'
import type { InstancePart, InstanceRequest, InstanceSpec } from '../instances/contract.ts'
import type { Assignments } from './assignments.ts'
import type { DeviceClaim } from './claim.ts'

type DeviceSpec = Pick<InstanceSpec, 'devices' | 'gpu'>

export function createDevicesPart (assignments: Assignments, log: Logger): InstancePart {
  return {
    name: 'devices',
    rank: 50,
    needs: { feature: 'host-devices', fields: ['devices', 'gpu'] },
    wanted: devicesIn,
    mustBoot: hasDevices,

    resolve: async (spec) => spec.devices === undefined ? spec : { ...spec, devices: await assignments.resolve(spec.devices) },
    forCopy: async (spec) => devicesForCopy(spec),
    forReplacement: devicesForReplacement,

    // The state of a device is in the device, so no memory image can hold it.
    requireCapturable (call, { name, spec }, image) {
      if (image === 'none' || !hasDevices(spec)) return
      throw InvalidState(`${call}: instance ${name} has ${spec.devices === undefined ? 'a vGPU' : 'a device'} of the host attached, whose state cannot be saved; stop the instance first`)
    },

    async reserve ({ id, spec }) {
      if (hasDevices(spec)) await assignments.attach(id, claimOf(spec))
    },

    connect: async ({ id, spec, user }) => hasDevices(spec) ? { devices: await assignments.open(id, claimOf(spec), user) } : {},

    // Nobody runs as the VM's user any more, and the next start of a VM corrects what is left.
    async disconnect ({ id, spec }) {
      if (!hasDevices(spec)) return
      try {
        await assignments.close(id)
      } catch (error) {
        log.error({ err: error, instance: id }, 'the devices of a VM that has ended are still within reach of its user')
      }
    },

    async release ({ id, spec }) {
      if (hasDevices(spec)) await assignments.release(id)
    },

    async retain (instances) {
      try {
        await assignments.retainOnly(new Set(instances.map(({ id }) => id)))
      } catch (error) {
        log.error({ err: error }, 'devices of instances that are no more could not be given back')
      }
    }
  }
}

/** Devices by the names that the caller used, until they are resolved. */
function devicesIn ({ devices, gpuProfile: profile }: InstanceRequest): DeviceSpec {
  return {
    ...(devices.length === 0 ? {} : { devices }),
    ...(profile === undefined ? {} : { gpu: { profile, mdevUuid: randomUUID() } })
  }
}

function hasDevices ({ devices, gpu }: DeviceSpec): boolean {
  return devices !== undefined || gpu !== undefined
}

/** A copy takes the same devices, if nobody has them, and a share of a GPU of its own. */
function devicesForCopy (spec: InstanceSpec): InstanceSpec {
  return spec.gpu === undefined ? spec : { ...spec, gpu: { ...spec.gpu, mdevUuid: randomUUID() } }
}

/** An instance that is put back keeps the devices that it has now. */
function devicesForReplacement ({ devices, gpu }: InstanceSpec, then: InstanceSpec): InstanceSpec {
  const { devices: _devices, gpu: _gpu, ...others } = then
  return { ...others, ...(devices === undefined ? {} : { devices }), ...(gpu === undefined ? {} : { gpu }) }
}

function claimOf ({ devices: deviceIds = [], gpu }: DeviceSpec): DeviceClaim {
  return { deviceIds, ...(gpu === undefined ? {} : { gpu }) }
}
