// Mediated egress: a policy is enforced for as long as an instance has a VM. It is stored in the row, and belongs to the address that the VM has.
import { PluginDisabled } from '../../../core/errors/common.ts'
import type { EgressService, EgressSpec } from '../egress/contract.ts'
import type { GuestTrust } from '../../guest/contract.ts'
import type { BaseContext } from '../context.ts'
import type { InstancePart } from '../contract.ts'
import type { InstanceRecord } from '../model/record.ts'
import { egressModeOf, requireNetwork } from './address.ts'

type Mediated = Pick<InstanceRecord, 'id' | 'spec'>

export function createPolicy (context: BaseContext): InstancePart {
  return {
    name: 'egress',
    rank: 30,
    lags: true,

    // The TAP is there and closed; only the policy lets anything out.
    async connect (instance) {
      await enforce(context, instance)
      return {}
    },

    async disconnect (instance) {
      try {
        await lift(context, instance)
      } catch (error) {
        context.log.error({ err: error, instance: instance.id }, 'the egress policy of a VM that has ended could not be lifted')
      }
    },

    // Before the address is given back: its next owner is somebody else.
    async release (instance) {
      if (instance.spec.egress === undefined) return
      await context.behind.over(instance.id)
      await lift(context, instance)
    },

    async adopted () {
      const { instances, network, egress, log } = context
      const running = instances.all().flatMap(({ record: { id, spec, handle }, session }) => {
        // A VM that could not be taken over, for example because its driver is turned off, still has its TAP.
        const runs = handle !== null && session?.vm.state.status !== 'gone'
        if (!runs || spec.egress === undefined) return []
        const ip = network?.addressOf(id)?.ip
        return ip === undefined ? [] : [{ instanceId: id, address: ip, spec: spec.egress }]
      })
      try {
        await egress?.adopt(running)
      } catch (error) {
        log.error({ err: error }, 'the egress policies of instances that run could not be taken over; they have no way out')
      }
    }
  }
}

/** Enforces the policy of the instance that a connected VM has become, before the VM goes on. When this rejects, the caller lifts the policy. @throws egress_unavailable */
export async function mediate (context: BaseContext, record: Mediated): Promise<void> {
  if (record.spec.egress === undefined) return
  await requireNetwork(context).setEgress(record.id, egressModeOf(record))
  await enforce(context, record)
}

/** Takes the policy away: nothing of the instance is let out any more. Never rejects. */
export async function lift (context: BaseContext, { id, spec }: Mediated): Promise<void> {
  if (spec.egress !== undefined) await context.egress?.lift(id)
}

/** Has the proxy take the policy. The VM must not run yet. @throws egress_unavailable, PluginDisabled */
async function enforce (context: BaseContext, { id, spec }: Mediated): Promise<void> {
  if (spec.egress === undefined) return
  const egress = requireEgress(context, 'network.egress')
  // The guest will be told of the authority: if it cannot be had now, this is found out before there is a VM.
  await egress.authority()
  const { ip } = await requireNetwork(context).allocate(id)
  await egress.enforce(id, ip, spec.egress)
}

/** Gets what the guest is to trust besides the authorities of its image; undefined when that is nothing. */
export function trustOf (context: BaseContext, { spec }: Pick<InstanceRecord, 'spec'>): (() => Promise<GuestTrust>) | undefined {
  return spec.egress === undefined ? undefined : async () => await requireEgress(context, 'network.egress').authority()
}

/** The policy and the service for it; the instance may have been created while the plugin was there. @throws PluginDisabled */
export function requirePolicy (context: BaseContext, { spec }: Pick<InstanceRecord, 'spec'>, field: string): { readonly egress: EgressService, readonly policy: EgressSpec } | undefined {
  return spec.egress === undefined ? undefined : { egress: requireEgress(context, field), policy: spec.egress }
}

function requireEgress ({ egress }: BaseContext, field: string): EgressService {
  if (egress === undefined) throw PluginDisabled('egress', field)
  return egress
}
