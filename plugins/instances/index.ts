// The plugin "instances": virtual machines with a name, a state and a life of their own.
import { definePlugin, type Deps } from '../../core/plugins/manifest.ts'
import { resolveSettings, type InstancesConfig } from './config.ts'
import { createInstanceSet } from './instance-set.ts'
import { createLocks } from '../../core/jobs/locks.ts'
import { manifest } from './manifest.ts'
import { createMetrics } from './metrics.ts'
import { createRepository } from './repository.ts'
import { instanceRoutes } from './routes.ts'
import { createInstances, type Instances } from './service.ts'

function compose (deps: Deps, config: InstancesConfig): Instances {
  const instances = createInstanceSet()
  return createInstances({
    settings: resolveSettings(config),
    dataDir: deps.server.dataDir,
    hostId: deps.server.hostId,
    separateUsers: process.getuid?.() === 0,
    log: deps.log.child({ plugin: manifest.id }),
    events: deps.events,
    commands: deps.commands,
    guest: deps.guest,
    images: deps.images,
    hypervisors: deps.hypervisors,
    repository: createRepository(deps.database),
    instances,
    locks: createLocks(),
    closing: new AbortController(),
    metrics: createMetrics(deps.metrics, function * () {
      for (const instance of instances.all()) yield instance.state
    })
  }, deps.server.version)
}

export const plugin = definePlugin({
  manifest,
  register (registrar, config) {
    registrar.provide('instanceService', (deps) => compose(deps, config))
  },
  async start ({ instanceService }) {
    await instanceService.open()
  },
  routes: ({ instanceService }) => instanceRoutes(instanceService),
  async stop ({ instanceService, server }) {
    await instanceService.close(server.stopInstancesOnExit)
  }
})
