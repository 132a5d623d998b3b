// All rules of a create request that can be decided before anything is looked up, in a fixed order.
import { InvalidRequest } from '../../../core/errors/common.ts'
import type { EgressService } from '../egress/contract.ts'
import type { HypervisorDriver } from '../../../core/library/hypervisor.ts'
import type { ResourceService } from '../room/contract.ts'
import type { Settings } from '../config.ts'
import type { InstancePart } from '../contract.ts'
import { checkAutoStandby } from '../auto-standby/validate.ts'
import { checkLifetime } from '../expiry/validate.ts'
import type { InstanceSpec, NetworkSpec } from '../record.ts'
import { checkHealthCheck } from '../health/validate.ts'
import { checkRestartPolicy } from '../restart/validate.ts'
import type { CreateInstance } from '../schemas.ts'
import { policyOf, wantsEgress } from './egress.ts'
import { checkEnv } from './env.ts'
import { checkFeatures, checkPlugins, chooseHypervisor, wantedOf } from './plugins.ts'
import { checkSizes, type Sizes } from './sizes.ts'
import { checkSnapshotPolicy } from './snapshot-policy.ts'
import { checkVolumes } from './volumes.ts'

/** What there is on this server to serve a request. */
export interface Available {
  readonly hypervisors: ReadonlyMap<string, Pick<HypervisorDriver, 'features'>>
  /** the service of the plugin networking */
  readonly network: unknown
  readonly egress: EgressService | undefined
  /** the service of the plugin volumes */
  readonly volumes: unknown
  readonly resources: ResourceService | undefined
  readonly parts: readonly InstancePart[]
}

/** What the request asks for, defaults filled in. @throws the first rule that it breaks */
export function specOf (body: CreateInstance, settings: Settings, { egress, hypervisors, network, parts, resources, volumes: volumeService }: Available): InstanceSpec {
  const sizes = checkSizes(body, settings)
  const vcpus = body.vcpus ?? settings.defaults.vcpus
  if (vcpus > settings.limits.maxVcpus) throw InvalidRequest(`vcpus: must be at most ${settings.limits.maxVcpus}`)
  checkEnv('env', body.env)
  const snapshotPolicy = checkSnapshotPolicy(body.snapshot_policy)
  const lifetime = checkLifetime(body)
  const restartPolicy = checkRestartPolicy(body.restart_policy)
  const healthCheck = checkHealthCheck(body.health_check, body.skip_guest_agent === true)
  const autoStandby = checkAutoStandby(body.auto_standby)
  const volumes = checkVolumes(body.volumes, settings)
  wantsEgress(body)
  checkPlugins(body, sizes, { devices: parts.some(({ name }) => name === 'devices'), egress: egress !== undefined, network: network !== undefined, ports: parts.some(({ name }) => name === 'ports'), resources: resources !== undefined, volumes: volumeService !== undefined })
  const hypervisor = chooseHypervisor(body.hypervisor, settings, hypervisors)
  checkFeatures(body, hypervisor, hypervisors)
  const wanted = wantedOf(body, parts, hypervisor, hypervisors)
  // Without the plugin there is no share, and with a driver that cannot keep one there is none either.
  const diskIoBps = sizes.diskIoBps ?? (hypervisors.get(hypervisor)?.features?.includes('disk-io-limit') === true ? resources?.defaultDiskIoBps(vcpus) : undefined)
  const networkSpec = networkOf(body, network !== undefined, sizes, resources?.defaultBandwidth(vcpus))
  return {
    ...(body.cmd === undefined ? {} : { cmd: body.cmd }),
    ...(body.entrypoint === undefined ? {} : { entrypoint: body.entrypoint }),
    ...policyOf(body, networkSpec, egress),
    hypervisor,
    vcpus,
    memoryBytes: sizes.memoryBytes,
    overlayBytes: sizes.overlayBytes,
    ...(sizes.hotplugBytes === 0 ? {} : { hotplugBytes: sizes.hotplugBytes }),
    ...(diskIoBps === undefined ? {} : { diskIoBps }),
    skipGuestAgent: body.skip_guest_agent ?? false,
    skipKernelHeaders: body.skip_kernel_headers ?? false,
    ...(snapshotPolicy === undefined ? {} : { snapshotPolicy }),
    network: networkSpec,
    ...(volumes.length === 0 ? {} : { volumes }),
    ...wanted,
    tags: body.tags ?? {},
    ...(lifetime === undefined ? {} : { lifetime }),
    ...(healthCheck === undefined ? {} : { healthCheck }),
    ...(autoStandby === undefined ? {} : { autoStandby }),
    ...(restartPolicy === undefined ? {} : { restartPolicy }),
    ...(body.wake === undefined ? {} : { wake: body.wake })
  }
}

/** With a network where there is one, unless the request does without. */
function networkOf ({ network }: CreateInstance, hasNetwork: boolean, { bandwidth }: Sizes, share: Sizes['bandwidth'] = {}): NetworkSpec {
  const enabled = network?.enabled ?? hasNetwork
  if (!enabled && Object.keys(bandwidth).length > 0) throw InvalidRequest('network: bandwidth_download and bandwidth_upload need network.enabled: true')
  return enabled ? { enabled, ...share, ...bandwidth } : { enabled }
}
