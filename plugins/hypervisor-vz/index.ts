// The plugin `hypervisor-vz`: runs VMs with macOS's Virtualization.framework, through vfkit.
import { join } from 'node:path'
import { checkProgram } from '../../core/library/vmm/program.ts'
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import { createVzDriver } from './driver.ts'
import { manifest } from './manifest.ts'
import { elsewhere } from './probe.ts'

export const plugin = definePlugin({
  manifest,

  create ({ commands, guest, log, server }, config) {
    const reason = elsewhere(process.platform)
    if (reason !== undefined) throw new SkipPlugin(reason)
    if (guest === undefined) throw new SkipPlugin('there is no system for guests, as the plugin guest does not run')
    return {
      filling: createVzDriver(config, {
        commands,
        guest,
        folder: join(server.dataDir, 'hypervisor-vz'),
        onError: (error) => log.error({ err: error }, 'watching a VM failed')
      }),
      start: (signal) => checkProgram('vfkit', config.binary, { commands, log }, signal)
    }
  }
})
