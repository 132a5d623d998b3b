// The plugin `hypervisor-firecracker`: runs VMs with Firecracker, under KVM.
import { join } from 'node:path'
import { checkProgram } from '../../core/library/vmm/program.ts'
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import { createFirecrackerDriver } from './driver.ts'
import { manifest } from './manifest.ts'

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
      start: (signal) => checkProgram('firecracker', config.binary, { commands, log }, signal)
    }
  }
})
