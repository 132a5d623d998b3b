// The bandwidth of instances that ask for none.
import type { BaseContext } from '../context.ts'
import type { InstanceSpec } from '../model/record.ts'

/** Adds the share of the instance's vCPUs, where the instance has a network and the host's rate is known. */
export function withBandwidthShare ({ resources }: Pick<BaseContext, 'resources'>, spec: InstanceSpec): InstanceSpec {
  if (spec.network?.enabled !== true) return spec
  return { ...spec, network: { ...resources?.defaultBandwidth(spec.vcpus), ...spec.network } }
}
