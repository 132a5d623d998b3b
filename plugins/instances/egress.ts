// The mediated way out, for the operations: a policy is enforced for as long as an instance has a VM.
import { PluginDisabled } from '../../core/errors/common.ts'
import type { EgressService, EgressSpec } from '../egress/contract.ts'
import type { GuestTrust } from '../guest/contract.ts'
import type { EgressMode } from '../networking/contract.ts'
import type { BaseContext } from './context.ts'
import type { InstanceRecord } from './record.ts'

type Mediated = Pick<InstanceRecord, 'id' | 'spec'>

/** What the network is to allow. */
export function egressModeOf ({ spec }: Pick<InstanceRecord, 'spec'>): EgressMode {
  return spec.egress?.mode ?? 'none'
}

/** Lets the proxy take its policy. Its VM must not run yet, and nothing but this lets anything of it out. @throws egress_unavailable, PluginDisabled */
export async function enforce (context: BaseContext, { id, spec }: Mediated, address: string): Promise<void> {
  if (spec.egress === undefined) return
  const egress = requireEgress(context, 'network.egress')
  // Its guest will be told of it: what cannot be had now is found out before there is a VM.
  await egress.authority()
  await egress.enforce(id, address, spec.egress)
}

/** Nothing of it is let out any more. Whoever releases its address does this before. Never rejects. */
export async function lift (context: BaseContext, { id, spec }: Mediated): Promise<void> {
  if (spec.egress !== undefined) await context.egress?.lift(id)
}

/** At the start of the server, once all is taken over: whose VM runs keeps its policy, and nobody else has one. Never rejects. */
export async function adoptPolicies (context: BaseContext): Promise<void> {
  const running = context.instances.all().flatMap(({ record: { id, spec, handle }, machine }) => {
    const ip = context.network?.addressOf(id)?.ip
    // One that could not be taken over, for example because its driver is turned off, has its TAP still.
    const runs = handle !== null && machine?.vm.state.status !== 'gone'
    return runs && spec.egress !== undefined && ip !== undefined ? [{ instanceId: id, address: ip, spec: spec.egress }] : []
  })
  try {
    await context.egress?.adopt(running)
  } catch (error) {
    context.log.error({ err: error }, 'the egress policies of instances that run could not be taken over; they have no way out')
  }
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
