// The plugin `hypervisor-cloud-hypervisor`: runs VMs with Cloud Hypervisor, under KVM.
import { join } from 'node:path'
import { checkProgram } from '../../core/library/vmm/program.ts'
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import { createCloudHypervisorDriver } from './driver.ts'
import { manifest } from './manifest.ts'

export const plugin = definePlugin({
  manifest,

  create ({ commands, guest, log, server }, config) {
    if (guest === undefined) throw new SkipPlugin('there is no system for guests, as the plugin guest does not run')
    return {
      filling: createCloudHypervisorDriver(config, {
        commands,
        guest,
        folder: join(server.dataDir, 'hypervisor-cloud-hypervisor'),
        onError: (error) => log.error({ err: error }, 'watching a VM failed')
      }),
      start: (signal) => checkProgram('cloud-hypervisor', config.binary, { commands, log }, signal)
    }
  }
})
