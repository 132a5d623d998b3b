// What this host can do, as GET /capabilities says it.
import type { HypervisorDriver } from '../../core/contracts/hypervisor.ts'
import type { CgroupState } from '../resources/contract.ts'
import type { Settings } from './config.ts'
import type { Capabilities } from './schemas.ts'
import { platform } from './view.ts'

const FEATURES = ['instances', 'images', 'exec', 'logs'] as const
/** what a driver is good for that makes memory images */
const IMAGING_FEATURES = ['snapshots', 'standby', 'fork'] as const
/** the same, when the server makes templates */
const INSTANT_CREATE = 'instant-create'

/**
 * Probes each driver once; the answers are cached by the drivers.
 * @param cgroups undefined without the plugin resources, which drivers' limits need
 */
export async function capabilitiesOf (hypervisors: ReadonlyMap<string, HypervisorDriver>, { defaults, templates }: Pick<Settings, 'defaults' | 'templates'>, version: string, cgroups: CgroupState | undefined): Promise<Capabilities> {
  const imagingFeatures = [...IMAGING_FEATURES, ...templates.enabled ? [INSTANT_CREATE] : []]
  const defaultName = defaults.hypervisor
  const runtimes = await Promise.all([...hypervisors.values()].map(async (driver) => {
    const { supported, version: vmm, acceleration, reason } = await driver.probe()
    return {
      name: driver.name,
      available: supported,
      features: [...driver.imaging === undefined ? [] : imagingFeatures, ...cgroups === undefined ? [] : driver.features ?? []],
      ...(vmm === undefined ? {} : { version: vmm }),
      ...(acceleration === undefined ? {} : { acceleration }),
      ...(reason === undefined ? {} : { reason })
    }
  }))
  runtimes.sort((a, b) => a.name < b.name ? -1 : 1)
  return {
    server: { version, api_version: version },
    host: { os: process.platform, arch: platform.split('/')[1] ?? process.arch, ...cgroups === undefined ? {} : { cgroups: hostCgroups(cgroups) } },
    default_runtime: { name: defaultName, available: runtimes.some(({ name, available }) => name === defaultName && available) },
    runtimes,
    features: [...FEATURES, ...runtimes.some(({ features }) => features.includes(INSTANT_CREATE)) ? [INSTANT_CREATE] : []],
    images: { default_platform: platform, platforms: [platform] }
  }
}

function hostCgroups ({ active, version, reason }: CgroupState): Capabilities['host']['cgroups'] {
  return { active, ...version === undefined ? {} : { version }, ...reason === undefined ? {} : { reason } }
}
