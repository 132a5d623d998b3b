// The one list of an instance's parts: those of this plugin, those of other plugins, and stand-ins for those whose plugin is not there.
import { PluginDisabled } from '../../../core/errors/common.ts'
import type { BaseContext } from '../context.ts'
import type { InstancePart } from '../contract.ts'
import type { InstanceSpec } from '../model/record.ts'
import { createAddress } from './address.ts'
import { createPolicy } from './policy.ts'
import { createRoom } from './room.ts'
import { createVolumes } from './volumes.ts'

/** The fields that a spec may have of a plugin which was turned off or removed since the instance was made. */
const FIELDS: ReadonlyMap<string, readonly (keyof InstanceSpec)[]> = new Map([
  ['devices', ['devices', 'gpu']]
])

/** In the order of their ranks. Room comes first, since asking for it touches nothing else; the policy comes after the address that it is for. */
export function listParts (context: BaseContext, brought: ReadonlyMap<string, InstancePart>): readonly InstancePart[] {
  const missing = [...FIELDS].filter(([plugin]) => !brought.has(plugin)).map(([plugin, fields]) => standIn(plugin, fields))
  const own = [createRoom(context), createAddress(context), createPolicy(context), createVolumes(context)]
  return [...own, ...brought.values(), ...missing].sort((a, b) => a.rank - b.rank)
}

/** An instance with such fields can be looked at, stopped and deleted; any other call that needs the plugin is refused, never ignored. */
function standIn (plugin: string, fields: readonly (keyof InstanceSpec)[]): InstancePart {
  const refuse = (spec: InstanceSpec): void => {
    const field = fields.find((name) => spec[name] !== undefined)
    if (field !== undefined) throw PluginDisabled(plugin, field)
  }
  return {
    name: `without ${plugin}`,
    rank: 0,
    mustBoot: (spec) => fields.some((name) => spec[name] !== undefined),
    requireCapturable (_call, { spec }, image) { if (image !== 'none') refuse(spec) },
    async forCopy (spec) {
      refuse(spec)
      return spec
    },
    async reserve ({ spec }) { refuse(spec) },
    async admit ({ spec }) { refuse(spec) },
    async connect ({ spec }) {
      refuse(spec)
      return {}
    }
  }
}
