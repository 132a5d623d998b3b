// The plugin "resources": what a host has, who takes what of it, and limits that its kernel keeps.
import { availableParallelism } from 'node:os'
import { definePlugin } from '../../core/plugins/manifest.ts'
import { manifest } from './manifest.ts'
import { resourceRoutes } from './routes.ts'
import { Resources } from './service.ts'
import { resolveSettings } from './settings.ts'

export const plugin = definePlugin({
  manifest,
  register (registrar, config) {
    registrar.provide('resourcesService', ({ log, database, gpus, network, server: { dataDir, hostId } }) => {
      const settings = resolveSettings(config)
      return new Resources({
        settings,
        dataDir,
        hostId,
        database,
        log: log.child({ plugin: manifest.id }),
        gpus: async () => await gpus?.gpus() ?? null,
        network: network === undefined ? {} : { ...network.limitsOf({ vcpus: Infinity }), uplink: network.uplink },
        cpuLimit: () => ((settings.capacity.cpu ?? availableParallelism()) - settings.reserve.cpu) * settings.ratio.cpu
      })
    })
    registrar.provide('resources', ({ resourcesService }) => resourcesService)
  },
  async start ({ resourcesService }) {
    await resourcesService.open()
  },
  routes: ({ resourcesService }) => resourceRoutes(resourcesService),
  async stop ({ resourcesService }) {
    await resourcesService.close()
  }
})
