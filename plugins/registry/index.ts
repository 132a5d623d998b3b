// The registry plugin: the built-in /v2, to which images are pushed.
import { join } from 'node:path'
import { durationMs, sizeBytes } from '../../core/config/quantities.ts'
import { definePlugin } from '../../core/plugins/manifest.ts'
import { manifest } from './manifest.ts'
import { registryRoutes } from './routes.ts'
import { BuiltInRegistry } from './source.ts'

export const plugin = definePlugin({
  manifest,
  create ({ log, commands, disk, events, apiKeys, server, processes }, config) {
    const registry = new BuiltInRegistry({
      log, commands, disk, events, apiKeys, server, processes, folder: join(server.dataDir, 'registry'), hosts: config.hosts, tokenTtlMs: durationMs(config.tokenTtl), maxUploadBytes: sizeBytes(config.maxUpload)
    })
    const { gateway, login, relay, store, uploads } = registry
    return {
      services: { registry },
      start: async (signal) => { await store.start(signal) },
      routes: registryRoutes({ login, relay, host: () => registry.host(), listening: () => registry.listening() }),
      async stop () {
        uploads.close()
        gateway.close()
        await store.stop()
      }
    }
  }
})
