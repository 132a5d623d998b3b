// What the tests of the Firecracker driver boot: the machines of the QEMU driver's, with the Firecracker that PATH or BERTH_FIRECRACKER names.
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HypervisorDriver } from '../../../core/library/hypervisor.ts'
import { createFirecrackerDriver } from '../../../plugins/hypervisor-firecracker/driver.ts'
import { createJailerSearch } from '../../../plugins/hypervisor-firecracker/jail.ts'
import type { HypervisorFirecrackerConfig } from '../../../plugins/hypervisor-firecracker/manifest.ts'
import { commands, guestSystem } from '../hypervisor-qemu/machine.ts'

export const binary = process.env['BERTH_FIRECRACKER'] ?? 'firecracker'
/** the driver's own */
export const folder = join(tmpdir(), 'berth-hypervisor-firecracker')

/** As long as each step may take on an emulated host. */
export const config: HypervisorFirecrackerConfig = {
  binary,
  probeTimeout: '3m',
  launchTimeout: '2m',
  guestTimeout: '5m',
  imageTimeout: '5m',
  heartbeatInterval: '500ms',
  heartbeatDeadline: '1s',
  jailer: process.env['BERTH_JAILER'] ?? 'jailer'
}

/** A driver as a new server makes it. */
export async function makeDriver (changes: Partial<HypervisorFirecrackerConfig> = {}): Promise<HypervisorDriver> {
  const settings = { ...config, ...changes }
  return createFirecrackerDriver(settings, {
    commands,
    guest: { system: guestSystem },
    folder,
    onError: (error) => { throw error }
  }, createJailerSearch(settings, { commands, folder }))
}

/** Why the real program cannot be tested here; undefined when it can. */
export async function missing (): Promise<string | undefined> {
  try {
    await commands.run(binary, ['--version'])
    return undefined
  } catch (error) {
    return `no Firecracker: ${error instanceof Error ? error.message : String(error)}; put it in PATH, or name it by BERTH_FIRECRACKER`
  }
}
