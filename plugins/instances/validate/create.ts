// The spec of a new instance on this server: the request, joined with what the server can do.
import { InvalidRequest } from '../../../core/errors/common.ts'
import type { EgressService } from '../egress/contract.ts'
import type { HypervisorDriver } from '../../../core/library/hypervisor.ts'
import type { PluginReports } from '../../../core/plugins/reports.ts'
import type { ResourceService } from '../room/contract.ts'
import type { Settings } from '../config.ts'
import type { InstancePart } from '../contract.ts'
import type { InstanceSpec, NetworkSpec } from '../model/record.ts'
import type { InstanceRequest } from '../model/request.ts'
import { policyOf } from './egress.ts'
import { checkHypervisor, checkPlugins, chooseHypervisor, wantedOf } from './plugins.ts'

type Bandwidth = Pick<NetworkSpec, 'downloadBps' | 'uploadBps'>

/** What this server has to serve a request. */
export interface Available {
  readonly hypervisors: ReadonlyMap<string, Pick<HypervisorDriver, 'features' | 'mostVcpus'>>
  readonly plugins: Pick<PluginReports, 'get'>
  /** the service of the plugin networking */
  readonly network: unknown
  readonly egress: EgressService | undefined
  /** the service of the plugin volumes */
  readonly volumes: unknown
  readonly resources: ResourceService | undefined
  readonly parts: readonly InstancePart[]
}

/** @throws for the first field that this server cannot serve */
export function specOf (request: InstanceRequest, settings: Settings, available: Available): InstanceSpec {
  const { egress, hypervisors, network, parts, resources, volumes: volumeService } = available
  const { spec } = request
  checkPlugins(request, { devices: parts.some(({ name }) => name === 'devices'), egress: egress !== undefined, network: network !== undefined, ports: parts.some(({ name }) => name === 'ports'), resources: resources !== undefined, volumes: volumeService !== undefined })
  const hypervisor = chooseHypervisor(request.hypervisor, settings, available)
  const wanted = wantedOf(request, parts)
  checkHypervisor({ ...spec, ...wanted }, hypervisor, available)
  // Without the plugin resources there is no share; with a driver that cannot limit disks there is none either.
  const diskIoBps = spec.diskIoBps ?? (hypervisors.get(hypervisor)?.features?.includes('disk-io-limit') === true ? resources?.defaultDiskIoBps(spec.vcpus) : undefined)
  const networkSpec = networkOf(request, network !== undefined, resources?.defaultBandwidth(spec.vcpus))
  return {
    ...spec,
    ...policyOf(request, networkSpec, egress),
    hypervisor,
    ...(diskIoBps === undefined ? {} : { diskIoBps }),
    network: networkSpec,
    ...wanted
  }
}

/** An instance has a network where the server has one, unless the request declines it. */
function networkOf ({ network: { enabled: asked, mediated: _mediated, ...bandwidth } }: InstanceRequest, hasNetwork: boolean, share: Bandwidth = {}): NetworkSpec {
  const enabled = asked ?? hasNetwork
  if (!enabled && Object.keys(bandwidth).length > 0) throw InvalidRequest('network: bandwidth_download and bandwidth_upload need network.enabled: true')
  return enabled ? { enabled, ...share, ...bandwidth } : { enabled }
}
