// What a server is told on an emulated host, where each step may take tens of times as long as on any host that the defaults are for.
import type { ServerOptions } from '../../setup/server/process.ts'
import { hypervisorNames } from '../helpers/hypervisor-names.ts'

/** set for what runs there: VMs must run under KVM, and this is a host where each step may take long */
export const UNDER_KVM = 'BERTH_TEST_KVM'
/** set besides where the host is emulated */
export const EMULATED = 'BERTH_TEST_EMULATED'
export const isEmulatedHost = process.env[EMULATED] === '1'

export const SLOW_SERVER: Pick<ServerOptions, 'readyTimeoutMs' | 'server'> = { readyTimeoutMs: 600_000, server: { startTimeout: '5m', stopTimeout: '1m' } }
/** of the plugin `guest`; the kernel's headers are not there */
export const SLOW_GUEST = { kernelHeaders: false, answerTimeout: '5m' }

const OFF = { enabled: false }
const DRIVER = { probeTimeout: '3m', launchTimeout: '2m', imageTimeout: '5m', heartbeatInterval: '5s', heartbeatDeadline: '1m' }

/** The plugin of a driver. QEMU's boards have one together. */
export function pluginOf (driver: string): string {
  return driver.startsWith('qemu') ? 'hypervisor-qemu' : `hypervisor-${driver}`
}

/** Settings of that plugin. */
export function slowDriver (driver: string): Readonly<Record<string, unknown>> {
  return driver.startsWith('qemu') ? { ...DRIVER, accelerator: 'kvm' } : { ...DRIVER, guestTimeout: '5m' }
}

/** What takes time at a server's start, and is there for none of the instances: all other drivers are off as well. */
export function turnedOff (driver: string): NonNullable<ServerOptions['plugins']> {
  const others = hypervisorNames.filter((name) => name !== driver && `hypervisor-${name}` !== pluginOf(driver)).map((name) => [`hypervisor-${name}`, OFF] as const)
  return { builds: OFF, console: OFF, events: OFF, pushes: OFF, ingress: OFF, ports: OFF, tracing: OFF, webhooks: OFF, devices: OFF, ...Object.fromEntries(others) }
}
