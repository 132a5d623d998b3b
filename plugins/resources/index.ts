// The plugin "resources": what a host has, who takes what of it, and limits that its kernel keeps.
import { reportOf } from '../../core/plugins/config-report.ts'
import { definePlugin } from '../../core/plugins/manifest.ts'
import { processorsOfHost } from '../../core/process/host-processors.ts'
import { manifest } from './manifest.ts'
import { resourceRoutes } from './routes.ts'
import { Resources } from './service.ts'
import { resolveSettings } from './settings.ts'

export const plugin = definePlugin({
  manifest,
  check: async (config) => await reportOf(() => resolveSettings(config)),
  create ({ log, database, gpus, network, server: { dataDir, hostId } }, config) {
    const settings = resolveSettings(config)
    const resources = new Resources({
      settings,
      dataDir,
      hostId,
      database,
      log: log.child({ plugin: manifest.id }),
      gpus: async () => await gpus?.gpus() ?? null,
      network: network === undefined ? {} : { ...network.limitsOf({ vcpus: Infinity }), uplink: network.uplink },
      cpuLimit: () => ((settings.capacity.cpu ?? processorsOfHost()) - settings.reserve.cpu) * settings.ratio.cpu
    })
    return {
      services: { resources },
      start: async () => { await resources.open() },
      routes: resourceRoutes(resources),
      stop: async () => { await resources.close() }
    }
  }
})
