// Devices of the host that an instance has for itself: its own for as long as it has a row, and within reach of its VM for as long as it has one.
import type { DeviceClaim } from '../../devices/contract.ts'
import { identityOf } from '../context.ts'
import { devicesForCopy, devicesForReplacement, hasDevices, requireDevices, requireNoDevices, resolveDevices } from '../devices.ts'
import type { InstanceSpec } from '../record.ts'
import type { InstancePart } from './part.ts'

export const devices: InstancePart = {
  name: 'devices',

  resolve: resolveDevices,
  forCopy: async (_context, _call, spec) => devicesForCopy(spec),
  forReplacement: (_call, now, then) => devicesForReplacement(now, then),

  requireCapturable (call, record, image) {
    if (image !== 'none') requireNoDevices(call, record)
  },

  async reserve (context, { id, spec }) {
    if (hasDevices(spec)) await requireDevices(context).attach(id, claimOf(spec))
  },

  async connect (context, record) {
    if (!hasDevices(record.spec)) return {}
    return { devices: await requireDevices(context).open(record.id, claimOf(record.spec), identityOf(context, record)) }
  },

  // Nobody runs as its user any more, and the next VM's start sets right what is left.
  async disconnect (context, { id, spec }) {
    if (!hasDevices(spec)) return
    try {
      await context.devices?.close(id)
    } catch (error) {
      context.log.error({ err: error, instance: id }, 'the devices of a VM that has ended are still within reach of its user')
    }
  },

  async release (context, { id, spec }) {
    if (hasDevices(spec)) await context.devices?.release(id)
  },

  async retain (context, records) {
    try {
      await context.devices?.retainOnly(new Set(records.map(({ id }) => id)))
    } catch (error) {
      context.log.error({ err: error }, 'devices of instances that are no more could not be given back')
    }
  }
}

function claimOf ({ devices: deviceIds = [], gpu }: InstanceSpec): DeviceClaim {
  return { deviceIds, ...(gpu === undefined ? {} : { gpu }) }
}
