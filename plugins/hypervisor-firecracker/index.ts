// The plugin `hypervisor-firecracker`: runs VMs with Firecracker, under KVM.
import { join } from 'node:path'
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import { HostCommandMissing } from '../../core/process/run.ts'
import { checkTool } from '../../core/process/tool-version.ts'
import { createFirecrackerDriver } from './driver.ts'
import { manifest } from './manifest.ts'

const VERSION_TIMEOUT_MS = 10_000

export const plugin = definePlugin({
  manifest,

  create ({ commands, guest, log, server }, config) {
    if (guest === undefined) throw new SkipPlugin('there is no system for guests, as the plugin guest does not run')
    return {
      filling: createFirecrackerDriver(config, {
        commands,
        guest,
        folder: join(server.dataDir, 'hypervisor-firecracker'),
        onError: (error) => log.error({ err: error }, 'watching a VM failed')
      }),

      // Only whether Firecracker is there: whether it runs guests is probed on first use, since that may need the kernel to be fetched.
      async start (signal) {
        try {
          await checkTool(config.binary, { commands, log, tool: 'firecracker', timeoutMs: VERSION_TIMEOUT_MS, signal })
        } catch (error) {
          if (HostCommandMissing.is(error)) throw new SkipPlugin(error.message)
          throw error
        }
      }
    }
  }
})
