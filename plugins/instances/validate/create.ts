// All rules of a create request that can be decided before anything is looked up, in a fixed order.
import { InvalidRequest } from '../../../core/errors/common.ts'
import type { EgressService } from '../../egress/contract.ts'
import type { Settings } from '../config.ts'
import type { InstanceSpec, NetworkSpec } from '../record.ts'
import type { CreateInstance } from '../schemas.ts'
import { policyOf, wantsEgress } from './egress.ts'
import { checkEnv } from './env.ts'
import { checkPlugins, chooseHypervisor } from './plugins.ts'
import { checkSizes, type Sizes } from './sizes.ts'
import { checkSnapshotPolicy } from './snapshot-policy.ts'
import { checkVolumes } from './volumes.ts'

/** What there is on this server to serve a request. */
export interface Available {
  readonly hypervisors: ReadonlyMap<string, unknown>
  /** the service of the plugin networking */
  readonly network: unknown
  readonly egress: EgressService | undefined
}

/** What the request asks for, defaults filled in. @throws the first rule that it breaks */
export function specOf (body: CreateInstance, settings: Settings, { hypervisors, network, egress }: Available): InstanceSpec {
  const sizes = checkSizes(body, settings)
  const vcpus = body.vcpus ?? settings.defaults.vcpus
  if (vcpus > settings.limits.maxVcpus) throw InvalidRequest(`vcpus: must be at most ${settings.limits.maxVcpus}`)
  checkEnv('env', body.env)
  const snapshotPolicy = checkSnapshotPolicy(body.snapshot_policy)
  checkVolumes(body.volumes, settings)
  wantsEgress(body)
  checkPlugins(body, sizes, { network: network !== undefined, egress: egress !== undefined })
  const networkSpec = networkOf(body, network !== undefined, sizes)
  return {
    ...(body.cmd === undefined ? {} : { cmd: body.cmd }),
    ...(body.entrypoint === undefined ? {} : { entrypoint: body.entrypoint }),
    ...policyOf(body, networkSpec, egress),
    hypervisor: chooseHypervisor(body.hypervisor, settings, hypervisors),
    vcpus,
    memoryBytes: sizes.memoryBytes,
    overlayBytes: sizes.overlayBytes,
    skipGuestAgent: body.skip_guest_agent ?? false,
    skipKernelHeaders: body.skip_kernel_headers ?? false,
    ...(snapshotPolicy === undefined ? {} : { snapshotPolicy }),
    network: networkSpec,
    tags: body.tags ?? {}
  }
}

/** With a network where there is one, unless the request does without. */
function networkOf ({ network }: CreateInstance, hasNetwork: boolean, { bandwidth }: Sizes): NetworkSpec {
  const enabled = network?.enabled ?? hasNetwork
  if (!enabled && Object.keys(bandwidth).length > 0) throw InvalidRequest('network: bandwidth_download and bandwidth_upload need network.enabled: true')
  return { enabled, ...bandwidth }
}
