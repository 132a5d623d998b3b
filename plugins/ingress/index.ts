// The plugin "ingress": host names and paths that lead to programs in instances, through nginx.
import { absentJournal } from '../../core/db/absent-journal.ts'
import { reportOf } from '../../core/plugins/config-report.ts'
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import { checkTool } from '../../core/process/tool-version.ts'
import { compose } from './compose.ts'
import { manifest } from './manifest.ts'
import { endAll } from './process/nginx.ts'
import { pathsOf } from './process/paths.ts'
import { ingressRoutes } from './routes.ts'
import { hasPort, requireSettings } from './settings.ts'

export const plugin = definePlugin({
  manifest,
  check: async (config) => await reportOf(() => requireSettings(config)),

  async create (deps, config) {
    const { certificates: { acme } } = config
    const { commands, events, log, server } = deps
    const reason = !hasPort(config)
      ? 'plugins.ingress.config.listen names no port'
      : deps.network === undefined
        ? 'the plugin networking does not run: guests without a network cannot be reached'
        : deps.instanceCopies === undefined ? 'the plugin instances does not run: there is nobody to be reached' : undefined
    if (reason !== undefined) {
      await endAll(pathsOf(server.dataDir).folder)
      throw new SkipPlugin(reason)
    }
    requireSettings(config)
    const ingresses = compose(deps, config, deps.journal ?? absentJournal(server.hostId))
    return {
      async start (signal) {
        if (acme.directory !== undefined) await checkTool('lego', { commands, log, packages: manifest.hostPackages, signal })
        await ingresses.begin(signal)
        events.on('instance.state', () => { void ingresses.instanceChanged() })
        events.on('instance.deleted', ({ id }) => { void ingresses.instanceDeleted(id) })
      },
      routes: ingressRoutes(ingresses),
      stop: async () => { await ingresses.close(server.stopInstancesOnExit) }
    }
  }
})
