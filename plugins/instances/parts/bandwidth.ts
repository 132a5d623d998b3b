// The bandwidth of whoever asks for none.
import type { BaseContext } from '../context.ts'
import type { InstanceSpec } from '../model/record.ts'

/** With the share of its vCPUs, where it has a network and the rate of the host's is known. */
export function withBandwidthShare ({ resources }: Pick<BaseContext, 'resources'>, spec: InstanceSpec): InstanceSpec {
  if (spec.network?.enabled !== true) return spec
  return { ...spec, network: { ...resources?.defaultBandwidth(spec.vcpus), ...spec.network } }
}
