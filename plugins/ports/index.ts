// The plugin "ports": addresses and ports of the host that lead to instances, and wake those that sleep.
import { durationMs } from '../../core/config/quantities.ts'
import { absentJournal } from '../../core/db/absent-journal.ts'
import { reportOf } from '../../core/plugins/config-report.ts'
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import { ownV4 } from '../../proxy/contract/own-addresses.ts'
import { createPortsPart } from './instance-part.ts'
import { endLeftovers } from './leftovers.ts'
import { manifest, type PortsConfig, type Deps } from './manifest.ts'
import { createPortsMetrics } from './metrics.ts'
import { PortRepository } from './repository.ts'
import { portRoutes } from './routes.ts'
import { Ports } from './service.ts'
import { requireSettings } from './settings.ts'

export const plugin = definePlugin({
  manifest,
  check: async (config) => await reportOf(() => requireSettings(config)),

  async create (deps, config) {
    const { commands, events, log, network, plugins, server: { dataDir } } = deps
    if (network === undefined) {
      await endLeftovers({ dataDir, commands })
      throw new SkipPlugin('without the plugin networking, no instance can be reached')
    }
    const ports = compose(deps, network, config)
    return {
      filling: createPortsPart(ports, log.child({ plugin: manifest.id })),
      async start () {
        events.on('instance.state', ({ id, to }) => { ports.moved(id, to).catch(() => {}) })
        // Without the plugin instances nobody looks after what an earlier server has published.
        void plugins.allTried().then(async () => { if (!ports.isAdopted) await endLeftovers({ dataDir, commands }) })
          .catch((error: unknown) => { log.error({ err: error, plugin: manifest.id }, 'the rules of an earlier server for published ports could not be removed') })
      },
      routes: portRoutes(ports),
      stop: async () => { await ports.close() }
    }
  }
})

/** @throws when a setting makes no sense */
function compose ({ log, database, commands, server: { hostId, dataDir }, journal, metrics }: Deps, network: NonNullable<Deps['network']>, config: PortsConfig): Ports {
  requireSettings(config)
  const ports: Ports = new Ports({
    config, dataDir, udpIdleMs: durationMs(config.udpIdle), repository: new PortRepository(database, hostId, journal ?? absentJournal(hostId)), network, commands, log: log.child({ plugin: manifest.id }), hostAddresses: () => ownV4(),
    metrics: createPortsMetrics(metrics, () => ports.figures())
  })
  return ports
}
