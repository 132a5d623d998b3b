// The one list of what an instance holds: the parts of this plugin, those that other plugins bring, and stand-ins for those that are not there.
import { PluginDisabled } from '../../../core/errors/common.ts'
import type { BaseContext } from '../context.ts'
import type { InstancePart } from '../contract.ts'
import type { InstanceSpec } from '../model/record.ts'
import { createAddress } from './address.ts'
import { createPolicy } from './policy.ts'
import { createRoom } from './room.ts'
import { createVolumes } from './volumes.ts'

/** What the spec of an instance may have of a plugin that was turned off, or taken away, since the instance was made. */
const FIELDS: ReadonlyMap<string, readonly (keyof InstanceSpec)[]> = new Map([
  ['devices', ['devices', 'gpu']]
])

/** In the order of their ranks: room first, since asking for it touches nothing else; a policy after the address that it is for. */
export function listParts (context: BaseContext, brought: ReadonlyMap<string, InstancePart>): readonly InstancePart[] {
  const missing = [...FIELDS].filter(([plugin]) => !brought.has(plugin)).map(([plugin, fields]) => standIn(plugin, fields))
  const own = [createRoom(context), createAddress(context), createPolicy(context), createVolumes(context)]
  return [...own, ...brought.values(), ...missing].sort((a, b) => a.rank - b.rank)
}

/** Such an instance can be looked at, stopped and deleted; nothing of it that needs the plugin is passed over in silence. */
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
    async forCopy (_call, spec) {
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
