// The mediated way out: a policy is enforced for as long as an instance has a VM. It is stored in the row, and belongs to the address that the VM has.
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

    // The TAP is there and shut; nothing but this lets anything out.
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

    // Before its address goes: whoever gets that next is somebody else.
    async release (instance) {
      if (instance.spec.egress === undefined) return
      await context.behind.over(instance.id)
      await lift(context, instance)
    },

    async adopted () {
      const { instances, network, egress, log } = context
      const running = instances.all().flatMap(({ record: { id, spec, handle }, session }) => {
        const ip = network?.addressOf(id)?.ip
        // One that could not be taken over, for example because its driver is turned off, has its TAP still.
        const runs = handle !== null && session?.vm.state.status !== 'gone'
        return runs && spec.egress !== undefined && ip !== undefined ? [{ instanceId: id, address: ip, spec: spec.egress }] : []
      })
      try {
        await egress?.adopt(running)
      } catch (error) {
        log.error({ err: error }, 'the egress policies of instances that run could not be taken over; they have no way out')
      }
    }
  }
}

/** Lets a VM that is connected, and has not gone on yet, have the policy of the instance that it has become. Whoever gets an error lifts it. @throws egress_unavailable */
export async function mediate (context: BaseContext, record: Mediated): Promise<void> {
  if (record.spec.egress === undefined) return
  await requireNetwork(context).setEgress(record.id, egressModeOf(record))
  await enforce(context, record)
}

/** Nothing of it is let out any more. Never rejects. */
export async function lift (context: BaseContext, { id, spec }: Mediated): Promise<void> {
  if (spec.egress !== undefined) await context.egress?.lift(id)
}

/** Lets the proxy take its policy. Its VM must not run yet. @throws egress_unavailable, PluginDisabled */
async function enforce (context: BaseContext, { id, spec }: Mediated): Promise<void> {
  if (spec.egress === undefined) return
  const egress = requireEgress(context, 'network.egress')
  // Its guest will be told of it: what cannot be had now is found out before there is a VM.
  await egress.authority()
  const { ip } = await requireNetwork(context).allocate(id)
  await egress.enforce(id, ip, spec.egress)
}

/** How to learn what the guest is to trust besides the authorities of its image; undefined when that is nothing. */
export function trustOf (context: BaseContext, { spec }: Pick<InstanceRecord, 'spec'>): (() => Promise<GuestTrust>) | undefined {
  return spec.egress === undefined ? undefined : async () => await requireEgress(context, 'network.egress').authority()
}

/** A policy and the service for it; an instance may have been created while the plugin was there. @throws PluginDisabled */
export function requirePolicy (context: BaseContext, { spec }: Pick<InstanceRecord, 'spec'>, field: string): { readonly egress: EgressService, readonly policy: EgressSpec } | undefined {
  return spec.egress === undefined ? undefined : { egress: requireEgress(context, field), policy: spec.egress }
}

function requireEgress ({ egress }: BaseContext, field: string): EgressService {
  if (egress === undefined) throw PluginDisabled('egress', field)
  return egress
}
