// Servers whose VMs run under the accelerator that is asked for: here, or on an emulated host.
import type { ServerOptions } from '../setup/server/process.ts'
import { SLOW_GUEST, SLOW_SERVER, slowDriver, turnedOff, UNDER_KVM } from '../test/emulated-host/slow.ts'
import type { Accelerator } from './options.ts'

type Plugins = NonNullable<ServerOptions['plugins']>

const DRIVER = 'qemu'
const PLUGIN = 'hypervisor-qemu'

/** Whether this program runs on an emulated host, where each step takes long. */
export const isEmulatedHost = process.env[UNDER_KVM] !== undefined

/** The settings of a server with these plugins. */
export function underAccelerator (accelerator: Accelerator, plugins: Plugins): Pick<ServerOptions, 'plugins' | 'readyTimeoutMs' | 'server'> {
  if (accelerator === 'auto') return { plugins }
  const driver = { [PLUGIN]: { config: { ...isEmulatedHost ? slowDriver(DRIVER) : {}, accelerator, ...plugins[PLUGIN]?.config } } }
  if (!isEmulatedHost) return { plugins: { ...plugins, ...driver } }
  return { ...SLOW_SERVER, plugins: { ...turnedOff(DRIVER), guest: { config: SLOW_GUEST }, ...plugins, ...driver } }
}

/** Where VMs run and how, for whoever reads a figure; undefined: as it comes. */
export function placeOf (accelerator: Accelerator): string | undefined {
  if (accelerator === 'auto') return undefined
  return `${isEmulatedHost ? 'an emulated host' : 'this host'}, ${accelerator === 'kvm' ? 'under KVM' : 'under emulation'}`
}
