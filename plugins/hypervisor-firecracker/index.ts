// The plugin `hypervisor-firecracker`: runs VMs with Firecracker, under KVM.
import { join } from 'node:path'
import { checkProgram } from '../../core/library/vmm/program.ts'
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import { createFirecrackerDriver } from './driver.ts'
import { createJailerSearch } from './jail.ts'
import { manifest } from './manifest.ts'

export const plugin = definePlugin({
  manifest,

  create ({ commands, guest, log, server }, config) {
    if (guest === undefined) throw new SkipPlugin('there is no system for guests, as the plugin guest does not run')
    const folder = join(server.dataDir, 'hypervisor-firecracker')
    const search = createJailerSearch(config, { commands, folder })
    return {
      filling: createFirecrackerDriver(config, {
        commands,
        guest,
        folder,
        onError: (error) => log.error({ err: error }, 'watching a VM failed')
      }, search),
      async start (signal) {
        await checkProgram('firecracker', config.binary, { commands, log }, signal)
        const jailer = await search()
        if (typeof jailer !== 'string') return log.info({ jailer: jailer.path }, 'each Firecracker is started by its jailer')
        // Who names a file wants it.
        if (config.jailer.includes('/') && process.getuid?.() === 0) throw new SkipPlugin(`plugins.hypervisor-firecracker.config.jailer: ${jailer}`)
        log.info({ reason: jailer }, 'Firecracker is started without its jailer')
      }
    }
  }
})
