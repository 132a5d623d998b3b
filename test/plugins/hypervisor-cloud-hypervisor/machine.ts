// What the tests of the Cloud Hypervisor driver boot: the machines of the QEMU driver's, with the Cloud Hypervisor that PATH or BERTH_CLOUD_HYPERVISOR names.
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HypervisorDriver } from '../../../core/library/hypervisor.ts'
import { createCloudHypervisorDriver } from '../../../plugins/hypervisor-cloud-hypervisor/driver.ts'
import type { HypervisorCloudHypervisorConfig } from '../../../plugins/hypervisor-cloud-hypervisor/manifest.ts'
import { commands, guestSystem } from '../hypervisor-qemu/machine.ts'

export const binary = process.env['BERTH_CLOUD_HYPERVISOR'] ?? 'cloud-hypervisor'

/** As long as each step may take on an emulated host. */
export const config: HypervisorCloudHypervisorConfig = {
  binary,
  probeTimeout: '3m',
  launchTimeout: '2m',
  guestTimeout: '5m',
  imageTimeout: '5m',
  heartbeatInterval: '500ms',
  heartbeatDeadline: '1s'
}

/** A driver as a new server makes it. */
export async function makeDriver (changes: Partial<HypervisorCloudHypervisorConfig> = {}): Promise<HypervisorDriver> {
  return createCloudHypervisorDriver({ ...config, ...changes }, {
    commands,
    guest: { system: guestSystem },
    folder: join(tmpdir(), 'berth-hypervisor-cloud-hypervisor'),
    onError: (error) => { throw error }
  })
}

/** Why the real program cannot be tested here; undefined when it can. */
export async function missing (): Promise<string | undefined> {
  try {
    await commands.run(binary, ['--version'])
    return undefined
  } catch (error) {
    return `no Cloud Hypervisor: ${error instanceof Error ? error.message : String(error)}; put it in PATH, or name it by BERTH_CLOUD_HYPERVISOR`
  }
}
