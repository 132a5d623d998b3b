// The plugin `hypervisor-qemu`: runs VMs with QEMU, under KVM or emulated.
import { join } from 'node:path'
import type { HypervisorDriver } from '../../core/library/hypervisor.ts'
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import { HostCommandMissing } from '../../core/process/run.ts'
import { checkTool } from '../../core/process/tool-version.ts'
import { q35 } from './board.ts'
import type { Board } from './contract.ts'
import { createQemuDriver } from './driver.ts'
import { manifest } from './manifest.ts'

const VERSION_TIMEOUT_MS = 10_000

export const plugin = definePlugin({
  manifest,

  create ({ commands, guest, log, server }, config) {
    const driverFor = (board: Board): HypervisorDriver => createQemuDriver(config, {
      commands,
      guest,
      folder: join(server.dataDir, `hypervisor-${board.driver}`),
      onError: (error) => log.error({ err: error }, 'watching a VM failed')
    }, board)
    const driver = driverFor(q35)
    return {
      services: { qemu: { driver: driverFor } },
      filling: driver,

      // Checks only whether QEMU exists: how it runs guests is probed on first use, since that may need the kernel to be fetched.
      async start (signal) {
        try {
          await checkTool(config.binary, { commands, log, packages: manifest.hostPackages, tool: 'qemu-system-x86_64', timeoutMs: VERSION_TIMEOUT_MS, signal })
        } catch (error) {
          if (HostCommandMissing.is(error)) throw new SkipPlugin(error.message)
          throw error
        }
        await driver.open?.()
      },

      stop: async () => { await driver.close?.() }
    }
  }
})
