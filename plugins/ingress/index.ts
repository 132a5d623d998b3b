// The plugin "ingress": names and paths that lead to programs in instances, by nginx.
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import { compose } from './compose.ts'
import { manifest } from './manifest.ts'
import { endAll } from './process/nginx.ts'
import { pathsOf } from './process/paths.ts'
import { ingressRoutes } from './routes.ts'

export const plugin = definePlugin({
  manifest,

  register (registrar, config) {
    registrar.provide('ingresses', (deps) => compose(deps, config))
  },

  async start (deps, { listen }, signal) {
    const reason = listen.http.length + listen.https.length === 0
      ? 'plugins.ingress.config.listen names no port'
      : deps.network === undefined
        ? 'the plugin networking does not run: guests without a network cannot be reached'
        : deps.instanceCopies === undefined ? 'the plugin instances does not run: there is nobody to be reached' : undefined
    if (reason !== undefined) {
      await endAll(pathsOf(deps.server.dataDir).folder)
      throw new SkipPlugin(reason)
    }
    const both = listen.http.find((port) => listen.https.includes(port))
    if (both !== undefined) throw new Error(`plugins.ingress.config.listen: port ${both} stands in http and in https`)
    const { ingresses, events } = deps
    await ingresses.begin(signal)
    events.on('instance.state', () => { void ingresses.instanceChanged() })
    events.on('instance.deleted', ({ id }) => { void ingresses.instanceDeleted(id) })
  },

  routes: ({ ingresses }) => ingressRoutes(ingresses),

  async stop ({ ingresses, network, instanceCopies, server }) {
    if (network !== undefined && instanceCopies !== undefined) await ingresses.close(server.stopInstancesOnExit)
  }
})
