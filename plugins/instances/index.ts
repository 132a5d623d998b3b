// The plugin "instances": virtual machines with a name, a state and a life of their own.
import { absentJournal } from '../../core/db/absent-journal.ts'
import { reportOf } from '../../core/plugins/config-report.ts'
import { definePlugin } from '../../core/plugins/manifest.ts'
import { createBehind } from './operations/behind.ts'
import { createCompressionSchedule } from './compression/schedule.ts'
import { resolveSettings, type InstancesConfig } from './config.ts'
import type { BaseContext, Context } from './context.ts'
import type { InstancePart } from './contract.ts'
import { createCopies } from './copies/service.ts'
import { endKept } from './hot-standby/keep.ts'
import { createKeptVms } from './hot-standby/kept-vms.ts'
import { createKeptMetrics } from './hot-standby/metrics.ts'
import { createInstanceSet } from './model/instance-set.ts'
import { createAlarms } from './life/alarms.ts'
import { createLeases } from './life/leases.ts'
import { createLocks } from '../../core/jobs/locks.ts'
import { manifest, type Deps } from './manifest.ts'
import { createMetrics } from './metrics.ts'
import { createPartHost } from './parts/host.ts'
import { listParts } from './parts/list.ts'
import { createRepository } from './model/repository.ts'
import { instanceRoutes } from './api/routes.ts'
import { createInstances } from './api/service.ts'
import { createStarts } from './operations/starts.ts'
import { createSpares } from './spares/spares.ts'
import { createTemplateMetrics } from './templates/metrics.ts'
import { createTemplates } from './templates/templates.ts'
import { createWaking } from './waking/waking.ts'
import { createWorkers } from './workers/workers.ts'

function compose (deps: Deps, config: InstancesConfig): Context {
  const instances = createInstanceSet()
  const parts: InstancePart[] = []
  const settings = resolveSettings(config)
  const log = deps.log.child({ plugin: manifest.id })
  const keptMetrics = createKeptMetrics(deps.metrics, () => base.kept.count())
  const base: BaseContext = {
    settings,
    dataDir: deps.server.dataDir,
    hostId: deps.server.hostId,
    separateUsers: process.getuid?.() === 0,
    log,
    events: deps.events,
    commands: deps.commands,
    disk: deps.disk,
    processes: deps.processes,
    guest: deps.guest,
    images: deps.images,
    network: deps.network,
    egress: deps.egress,
    resources: deps.resources,
    volumes: deps.volumes,
    parts,
    hypervisors: deps.hypervisors,
    plugins: deps.plugins,
    repository: createRepository(deps.database, deps.server.hostId, deps.journal ?? absentJournal(deps.server.hostId)),
    instances,
    hidden: new Set(),
    locks: createLocks(),
    behind: createBehind(),
    provenImages: new Set(),
    alarms: createAlarms(),
    leases: createLeases(),
    monitors: new Map(),
    later: new Set(),
    closing: new AbortController(),
    starts: createStarts(settings.startsAtOnce),
    // One at a time on this host, for every plugin: snapshots use the same queue.
    compressions: createCompressionSchedule(deps.jobs.queue('compression', { concurrency: 1 })),
    kept: createKeptVms({ settings: settings.hotStandby, log, metrics: keptMetrics, end: async (kept) => { await endKept(base, kept) } }),
    keptMetrics,
    metrics: createMetrics(deps.metrics, function * () {
      for (const instance of instances.all()) yield instance.state
    })
  }
  deps.resources?.noteKept(base.kept.count)
  parts.push(...listParts(base, deps.instanceParts ?? new Map()))
  const tools = createSpares(base, deps.jobs)
  const { spares } = tools
  const templates = createTemplates(base, tools)
  return { ...base, templates, spares, ways: createTemplateMetrics(deps.metrics, () => ({ templates: templates.count(), spares: spares.count() })) }
}

export const plugin = definePlugin({
  manifest,
  check: async (config) => await reportOf(() => resolveSettings(config)),
  create (deps, config) {
    // All services below work on the same instances, under the same locks.
    const context = compose(deps, config)
    const waking = createWaking(context, deps.jobs)
    const host = createPartHost(context, waking)
    for (const part of context.parts) part.introduce?.(host)
    const instances = createInstances(context, deps.server)
    return {
      services: { instanceCopies: createCopies(context), waking, workers: createWorkers(context), leases: context.leases },
      start: async () => { await instances.open() },
      routes: instanceRoutes(instances, deps.egress !== undefined),
      stop: async () => { await instances.close(deps.server.stopInstancesOnExit) }
    }
  }
})
