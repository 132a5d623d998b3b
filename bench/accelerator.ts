// Servers whose VMs run as is asked for: by which VMM, under which accelerator, and here or on an emulated host.
import type { ServerOptions } from '../setup/server/process.ts'
import { namedProgram } from '../test/emulated-host/named-programs.ts'
import { isEmulatedHost, pluginOf, SLOW_GUEST, SLOW_SERVER, slowDriver, turnedOff } from '../test/emulated-host/slow.ts'
import type { Under } from './options.ts'

type Plugins = NonNullable<ServerOptions['plugins']>

/** The settings of a server with these plugins. */
export function serverUnder ({ accelerator, hypervisor }: Under, plugins: Plugins): Pick<ServerOptions, 'plugins' | 'readyTimeoutMs' | 'server'> {
  if (accelerator === 'auto') return { plugins }
  const { instances } = plugins
  const plugin = pluginOf(hypervisor)
  const asked = hypervisor === 'qemu' ? { accelerator } : programOf(hypervisor)
  const own = {
    ...plugins,
    instances: { ...instances, config: { ...instances?.config, defaults: { hypervisor } } },
    [plugin]: { config: { ...isEmulatedHost ? slowDriver(hypervisor) : {}, ...asked, ...plugins[plugin]?.config } }
  }
  return isEmulatedHost ? { ...SLOW_SERVER, plugins: { ...turnedOff(hypervisor), guest: { config: SLOW_GUEST }, ...own } } : { plugins: own }
}

/** Other VMMs run under KVM alone. QEMU's program is named by the benchmarks that may take another one. Firecracker has no jail: one that is started by hand has none either, and what it is told is read from outside. */
function programOf (hypervisor: string): Readonly<Record<string, string>> {
  const binary = namedProgram(hypervisor)
  return { ...binary === undefined ? {} : { binary }, ...hypervisor === 'firecracker' ? { jailer: 'off' } : {} }
}

/** Where VMs run and how, for whoever reads a figure; undefined: as it comes. */
export function placeOf ({ accelerator, hypervisor }: Under): string | undefined {
  if (accelerator === 'auto') return undefined
  return `${isEmulatedHost ? 'an emulated host' : 'this host'}, ${hypervisor} ${accelerator === 'kvm' ? 'under KVM' : 'under emulation'}`
}
