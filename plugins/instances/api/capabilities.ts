// What this host can do, as GET /capabilities says it.
import type { HypervisorDriver } from '../../../core/library/hypervisor.ts'
import { ociArchitecture } from '../../../core/library/oci/architecture.ts'
import type { ServerInfo } from '../../../core/contracts/services.ts'
import type { PluginReports } from '../../../core/plugins/reports.ts'
import type { NetworkFacts } from '../../networking/contract.ts'
import type { CgroupState } from '../room/contract.ts'
import { absentHypervisors } from '../host/absent-hypervisor.ts'
import type { Settings } from '../config.ts'
import type { Capabilities } from './capabilities-schema.ts'
import { platform } from './view.ts'

const FEATURES = ['instances', 'images', 'exec', 'logs'] as const
/** features of a driver that makes memory images */
const IMAGING_FEATURES = ['snapshots', 'standby', 'fork'] as const
/** the feature that such a driver has when the server makes templates */
const INSTANT_CREATE = 'instant-create'
/** the feature of a driver that keeps paused VMs, when the server keeps VMs in standby */
const HOT_STANDBY = 'hot-standby'
/** the feature of a driver whose VMs share the memory of what they are made of, once that is known to work */
const PRIVATE_MEMORY = 'private-memory'

/** features of drivers that need nothing of the plugin resources */
const WITHOUT_RESOURCES: readonly string[] = ['balloon-control', 'removable-disks']

/** features that are listed when the plugin of the same name runs */
const PLUGIN_FEATURES = ['builds', 'devices', 'egress', 'ingress', 'pushes', 'registry', 'snapshots', 'volumes', 'webhooks'] as const

export interface CapabilitySources {
  readonly hypervisors: ReadonlyMap<string, HypervisorDriver>
  readonly settings: Pick<Settings, 'defaults' | 'limits' | 'templates' | 'hotStandby' | 'privateMemory'>
  readonly server: Pick<ServerInfo, 'version' | 'apiVersion'>
  readonly plugins: Pick<PluginReports, 'isStarted' | 'list'>
  /** undefined without the plugin networking */
  readonly network: NetworkFacts | undefined
  /** undefined without the plugin resources, on which the drivers' limits depend */
  readonly cgroups: CgroupState | undefined
}

/** Probes each driver once; the answers are cached by the drivers. */
export async function capabilitiesOf ({ hypervisors, settings: { defaults, limits, templates, hotStandby, privateMemory }, server, plugins, network, cgroups }: CapabilitySources): Promise<Capabilities> {
  const imagingFeatures = [...IMAGING_FEATURES, ...templates.enabled ? [INSTANT_CREATE] : []]
  const keepsVms = hotStandby.maxCount > 0 && hotStandby.keepMs > 0
  const defaultName = defaults.hypervisor
  const runtimes = await Promise.all([...hypervisors.values()].map(async (driver) => {
    const { supported, version: vmm, acceleration, reason: slow } = await driver.probe()
    const unproven = supported ? await unprovenImaging(driver) : { plain: undefined, hotplug: undefined }
    const isShared = privateMemory && unproven.plain === undefined && await driver.imaging?.privateMemory?.isProven() === true
    const ofImaging = [...imagingFeatures, ...keepsVms && driver.imaging?.keepsPaused === true ? [HOT_STANDBY] : [], ...isShared ? [PRIVATE_MEMORY] : []]
    const reason = reasons(slow, unproven)
    return {
      name: driver.name,
      available: supported,
      features: [...driver.imaging === undefined || unproven.plain !== undefined ? [] : ofImaging, ...driver.features?.filter((feature) => cgroups !== undefined || WITHOUT_RESOURCES.includes(feature)) ?? []],
      ...(vmm === undefined ? {} : { version: vmm }),
      ...(acceleration === undefined ? {} : { acceleration }),
      ...(reason === undefined ? {} : { reason })
    }
  }))
  for (const { name, reason } of absentHypervisors(hypervisors, plugins)) runtimes.push({ name, available: false, features: [], reason })
  runtimes.sort((a, b) => a.name < b.name ? -1 : 1)
  return {
    server: { version: server.version, api_version: server.apiVersion },
    host: { os: process.platform, arch: ociArchitecture(), ...cgroups === undefined ? {} : { cgroups: hostCgroups(cgroups) } },
    default_runtime: { name: defaultName, available: runtimes.some(({ name, available }) => name === defaultName && available) },
    runtimes,
    features: [...FEATURES, ...PLUGIN_FEATURES.filter((id) => plugins.isStarted(id)), ...runtimes.some(({ features }) => features.includes(INSTANT_CREATE)) ? [INSTANT_CREATE] : []],
    // Clients of the peer expect `model` even where no guest can have a network.
    network: { model: 'bridge', guest_to_guest: network?.guestToGuest ?? false, ...network === undefined ? {} : { subnet: network.subnet, gateway: network.gateway } },
    images: { default_platform: platform, platforms: [platform] },
    instances: {
      vcpus: { min: 1, max: limits.maxVcpus, default: defaults.vcpus },
      size_bytes: { min: limits.minMemoryBytes, max: limits.maxMemoryBytes, default: defaults.memoryBytes },
      overlay_size_bytes: { min: limits.minOverlayBytes, max: limits.maxOverlayBytes, default: defaults.overlayBytes }
    }
  }
}

interface Unproven { readonly plain: string | undefined, readonly hotplug: string | undefined }

/** Why VMs cannot be saved and restored. Tried once for each VMM, which takes as long as a boot. */
async function unprovenImaging ({ imaging }: HypervisorDriver): Promise<Unproven> {
  try {
    return { plain: await imaging?.refusal({}), hotplug: await imaging?.refusal({ hotplugBytes: 1 }) }
  } catch (error) {
    const why = `whether VMs can be saved and restored could not be found out: ${error instanceof Error ? error.message : String(error)}`
    return { plain: why, hotplug: why }
  }
}

/** Joins the reasons to one text; a reason that comes twice is said once. */
function reasons (slow: string | undefined, { plain, hotplug }: Unproven): string | undefined {
  const said = [slow, plain === undefined ? hotplug : `${IMAGING_FEATURES.join(', ')} and ${INSTANT_CREATE} are not available: ${plain}`].filter((reason) => reason !== undefined)
  return said.length === 0 ? undefined : said.join('; ')
}

function hostCgroups ({ active, version, reason }: CgroupState): Capabilities['host']['cgroups'] {
  return { active, ...version === undefined ? {} : { version }, ...reason === undefined ? {} : { reason } }
}
