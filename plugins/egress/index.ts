// The plugin "egress": the mediated way out, with credentials that a VM uses without having their values.
import { definePlugin, SkipPlugin } from '../../core/plugins/manifest.ts'
import { AuthorityMaker } from './authority.ts'
import { ControlClient } from './control/client.ts'
import { manifest, type EgressConfig, type Deps } from './manifest.ts'
import { createMetrics } from './metrics.ts'
import { endAllOfOwner } from './process/end-all.ts'
import { ExternalProxy } from './process/external-proxy.ts'
import { ManagedProxy } from './process/managed-proxy.ts'
import { pathsOf } from './process/paths.ts'
import { checkProxyFile } from './process/proxy-file.ts'
import { EgressRepository } from './repository.ts'
import { Egress } from './service.ts'
import { settingProblems } from './settings.ts'

function compose (deps: Deps, network: NonNullable<Deps['network']>, config: EgressConfig): Egress {
  const { database, commands, secrets, tracing, server: { dataDir, hostId } } = deps
  const log = deps.log.child({ plugin: manifest.id })
  const paths = pathsOf(dataDir)
  const client = new ControlClient(config.proxy.controlSocket ?? paths.controlSocket)
  const metrics = createMetrics(deps.metrics, () => service)
  const proxy = config.proxy.manage
    ? new ManagedProxy({ config, dataDir, paths, network, commands, processes: deps.processes, client, log, onStart: () => { metrics.starts.inc() } })
    : new ExternalProxy({ network, commands, log })
  const service = new Egress({
    repository: new EgressRepository(database, hostId),
    secrets,
    network,
    config,
    tracing,
    proxy,
    client,
    authority: new AuthorityMaker(commands),
    log,
    onPush: (outcome) => { metrics.pushes.inc({ outcome }) }
  })
  return service
}

export const plugin = definePlugin({
  manifest,

  async create (deps, config) {
    const { log, network, plugins, server } = deps
    if (network === undefined) {
      await endAllOfOwner(pathsOf(server.dataDir))
      throw new SkipPlugin('the plugin networking does not run: without a network for guests there is no way out to mediate')
    }
    const egress = compose(deps, network, config)
    return {
      services: { egress },
      async start () {
        const problems = await settingProblems(config)
        if (problems.length > 0) throw new Error(problems.join('; '))
        // One that an earlier server has started would be told nothing from now on.
        if (!config.proxy.manage) await endAllOfOwner(pathsOf(server.dataDir))
        await egress.open()
        // Without the plugin instances nobody knows whose policies it has.
        void plugins.allTried().then(async () => { await egress.endUnknown() })
          .catch((error: unknown) => { log.error({ err: error, plugin: manifest.id }, 'the egress proxy of an earlier server could not be ended') })
      },
      stop: async () => { await egress.close(server.stopInstancesOnExit) }
    }
  },

  async check (config, folder) {
    const [own, { problems, files }] = await Promise.all([settingProblems(config), config.proxy.manage ? { problems: [], files: [] } : checkProxyFile(folder)])
    return { problems: [...own, ...problems], files }
  }
})
