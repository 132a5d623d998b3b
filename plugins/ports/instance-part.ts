// Published ports as a part of an instance: the instance has them as long as it has a row, whether it has a VM or sleeps.
import type { Logger } from '../../core/contracts/services.ts'
import type { InstancePart, InstanceSpec } from '../instances/contract.ts'
import { NoWayToGuests } from './errors.ts'
import type { Ports } from './service.ts'

export function createPortsPart (ports: Ports, log: Logger): InstancePart {
  return {
    name: 'ports',
    // After the address, whose openings are set.
    rank: 40,
    reservedAtClaim: true,

    introduce (host) { ports.introduce(host) },

    wanted ({ ports: asked, network }) {
      if (asked.length === 0) return {}
      ports.check(asked)
      if (network.enabled === false) throw NoWayToGuests('ports', 'an instance without a network has no ports')
      return { ports: asked }
    },

    // A place belongs to a single instance.
    forCopy: async (spec) => withoutPorts(spec),
    forReplacement: (now, then) => ({ ...withoutPorts(then), ...(now.ports === undefined ? {} : { ports: now.ports }) }),

    async reserve (instance, purpose) {
      const { spec: { ports: asked = [] } } = instance
      if (purpose !== 'hidden' && asked.length > 0) await ports.publishAll(instance, asked)
    },

    async disconnect ({ id }) { await ports.cut(id) },
    async release ({ id }) { await ports.releaseAll(id) },

    async retain (instances) { await ports.open(new Set(instances.map(({ id }) => id))) },

    async adopted () {
      try {
        await ports.adopted()
      } catch (error) {
        log.error({ err: error }, 'the published ports could not be taken over')
      }
    }
  }
}

function withoutPorts (spec: InstanceSpec): InstanceSpec {
  const { ports: _ports, ...others } = spec
  return others
}
