// The registry plugin: the built-in /v2, to which images are pushed.
import { join } from 'node:path'
import { durationMs, sizeBytes } from '../../core/config/quantities.ts'
import { definePlugin } from '../../core/plugins/manifest.ts'
import { manifest, type Deps } from './manifest.ts'
import { registryRoutes } from './routes.ts'
import { BuiltInRegistry } from './source.ts'

export const plugin = definePlugin({
  manifest,
  register (registrar, config) {
    registrar.provide('registry', ({ log, commands, disk, events, apiKeys, server }) => new BuiltInRegistry({
      log, commands, disk, events, apiKeys, server, folder: join(server.dataDir, 'registry'), hosts: config.hosts, tokenTtlMs: durationMs(config.tokenTtl), maxUploadBytes: sizeBytes(config.maxUpload)
    }))
  },
  async start (deps, _config, signal) {
    await own(deps).store.start(signal)
  },
  routes: (deps) => {
    const registry = own(deps)
    return registryRoutes({ login: registry.login, relay: registry.relay, listening: () => registry.listening() })
  },
  async stop (deps) {
    const { gateway, store, uploads } = own(deps)
    uploads.close()
    gateway.close()
    await store.stop()
  }
})

function own (deps: Deps): BuiltInRegistry {
  if (deps.registry instanceof BuiltInRegistry) return deps.registry
  throw new Error('the service "registry" is not the one that this plugin made')
}
