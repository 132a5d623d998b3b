// The plugin "instances": virtual machines with a name, a state and a life of their own.
import { definePlugin } from '../../core/plugins/manifest.ts'
import { createBehind } from './behind.ts'
import { createCompressionSchedule } from './compression/schedule.ts'
import { resolveSettings, type InstancesConfig } from './config.ts'
import type { BaseContext, Context } from './context.ts'
import type { InstancePart, InstanceWaking } from './contract.ts'
import { createCopies } from './copies/service.ts'
import { createInstanceSet } from './instance-set.ts'
import { createAlarms } from './life/alarms.ts'
import { createLeases } from './life/leases.ts'
import { createLocks } from '../../core/jobs/locks.ts'
import { manifest, type Deps } from './manifest.ts'
import { createMetrics } from './metrics.ts'
import { createPartHost } from './parts/host.ts'
import { listParts } from './parts/list.ts'
import { createRepository } from './repository.ts'
import { instanceRoutes } from './routes.ts'
import { createInstances } from './service.ts'
import { createTemplateMetrics } from './templates/metrics.ts'
import { createTemplates } from './templates/templates.ts'
import { createWaking } from './waking/waking.ts'
import { createWorkers } from './workers.ts'

function compose (deps: Deps, config: InstancesConfig): Context {
  const instances = createInstanceSet()
  const parts: InstancePart[] = []
  const base: BaseContext = {
    settings: resolveSettings(config),
    dataDir: deps.server.dataDir,
    hostId: deps.server.hostId,
    separateUsers: process.getuid?.() === 0,
    log: deps.log.child({ plugin: manifest.id }),
    events: deps.events,
    commands: deps.commands,
    guest: deps.guest,
    images: deps.images,
    network: deps.network,
    egress: deps.egress,
    resources: deps.resources,
    volumes: deps.volumes,
    parts,
    hypervisors: deps.hypervisors,
    repository: createRepository(deps.database, deps.server.hostId, deps.journal),
    instances,
    hidden: new Set(),
    locks: createLocks(),
    behind: createBehind(),
    provenImages: new Set(),
    alarms: createAlarms(),
    leases: createLeases(),
    monitors: new Map(),
    closing: new AbortController(),
    // One at a time on this host, whoever wants it: snapshots use the same queue.
    compressions: createCompressionSchedule(deps.jobs.queue('compression', { concurrency: 1 })),
    metrics: createMetrics(deps.metrics, function * () {
      for (const instance of instances.all()) yield instance.state
    })
  }
  parts.push(...listParts(base, deps.instanceParts ?? new Map()))
  const templates = createTemplates(base, deps.jobs)
  return { ...base, templates, ways: createTemplateMetrics(deps.metrics, () => templates.count()) }
}

export const plugin = definePlugin({
  manifest,
  register (registrar, config) {
    let composed: Context | undefined
    // All work on the same instances, under the same locks.
    const contextOf = (deps: Deps): Context => {
      composed ??= compose(deps, config)
      return composed
    }
    let waking: InstanceWaking | undefined
    const wakingOf = (deps: Deps): InstanceWaking => {
      waking ??= createWaking(contextOf(deps), deps.jobs)
      return waking
    }
    registrar.provide('instanceService', (deps) => {
      const context = contextOf(deps)
      const host = createPartHost(context, wakingOf(deps))
      for (const part of context.parts) part.introduce?.(host)
      return createInstances(context, { server: deps.server, plugins: deps.plugins })
    })
    registrar.provide('instanceCopies', (deps) => createCopies(contextOf(deps)))
    registrar.provide('waking', (deps) => wakingOf(deps))
    registrar.provide('workers', (deps) => createWorkers(contextOf(deps)))
    registrar.provide('leases', (deps) => contextOf(deps).leases)
  },
  async start ({ instanceService }) {
    await instanceService.open()
  },
  routes: ({ instanceService, egress }) => instanceRoutes(instanceService, egress !== undefined),
  async stop ({ instanceService, server }) {
    await instanceService.close(server.stopInstancesOnExit)
  }
})
