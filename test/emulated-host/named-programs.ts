// Which VMMs the caller named by variables: an emulated host has nothing of this one's environment, and all of its files.

import { pluginOf } from './slow.ts'

const VARIABLES = ['BERTH_QEMU', 'BERTH_FIRECRACKER', 'BERTH_JAILER', 'BERTH_CLOUD_HYPERVISOR', 'BERTH_VFKIT']

/** The environment for such a host. */
export function namedPrograms (): Readonly<Record<string, string>> {
  return Object.fromEntries(VARIABLES.flatMap((name) => {
    const value = process.env[name]
    return value === undefined ? [] : [[name, value]]
  }))
}

/** The program of a driver, if the caller named one. QEMU's boards have one together. */
export function namedProgram (driver: string): string | undefined {
  return process.env[pluginOf(driver).replace('hypervisor-', 'BERTH_').toUpperCase().replaceAll('-', '_')]
}
