// For tests of the real server that need no VM: the driver that plays one is in QEMU's place, and nothing of a guest's system is made.
import { fileURLToPath } from 'node:url'
import type { ServerOptions } from '../../setup/server/process.ts'

export const withFakeDriver: Pick<ServerOptions, 'plugins'> = {
  plugins: {
    'hypervisor-qemu': { enabled: false },
    'hypervisor-fake': { module: fileURLToPath(new URL('../hypervisor-fake/as-qemu.js', import.meta.url)) },
    builds: { enabled: false },
    guest: { config: { prepare: false } }
  }
}
