// What the tests of the driver for macOS have in common.
import type { HypervisorVzConfig } from '../../../plugins/hypervisor-vz/manifest.ts'

export const config: HypervisorVzConfig = { binary: 'vfkit', probeTimeout: '20s', launchTimeout: '20s', guestTimeout: '20s', heartbeatInterval: '500ms', heartbeatDeadline: '1s' }
