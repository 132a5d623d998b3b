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
    if (listen.http.length + listen.https.length === 0) {
      await endAll(pathsOf(deps.server.dataDir).folder)
      throw new SkipPlugin('plugins.ingress.config.listen names no port')
    }
    if (deps.network === undefined) throw new SkipPlugin('the plugin networking does not run: guests without a network cannot be reached')
    if (deps.instanceCopies === undefined) throw new SkipPlugin('the plugin instances does not run: there is nobody to be reached')
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
