// The plugin "builds": makes images from sources, each in a VM of its own.
import { durableIdOf } from '../../core/auth/durable-id.ts'
import { createLine } from '../../core/db/line.ts'
import { absentJournal } from '../../core/db/absent-journal.ts'
import { resumeShares } from '../../core/jobs/resume-shares.ts'
import { createLocks } from '../../core/jobs/locks.ts'
import { createShares } from '../../core/jobs/shares.ts'
import { SHARED_CACHES_SCOPE } from '../../core/library/oci/shared-caches.ts'
import { reportOf } from '../../core/plugins/config-report.ts'
import { definePlugin, type Plugin } from '../../core/plugins/manifest.ts'
import type { Clocks } from '../../core/steady-clock.ts'
import { BuilderRepository } from './builders/repository.ts'
import { createClock } from './clock.ts'
import type { BuildsConfig } from './config.ts'
import type { Context } from './context.ts'
import { TooManyBuilds } from './errors.ts'
import { BuildFiles } from './files.ts'
import { manifest, type Deps } from './manifest.ts'
import { createBuildMetrics } from './metrics.ts'
import { BuildQueue } from './queue/build-queue.ts'
import { realRunner } from './real-runner.ts'
import { BuildRepository } from './repository.ts'
import { buildRoutes } from './routes.ts'
import type { RunnerSource } from './runner-source.ts'
import { SecretFolder } from './secrets/secret-folder.ts'
import { createBuilds } from './service.ts'
import { settingsOf } from './settings.ts'

/** The plugin with another runner. @param clocks absent: the host's */
export function buildsPlugin (source: RunnerSource, clocks?: Clocks): Plugin {
  return definePlugin({
    manifest: { ...manifest, requires: [...new Set([...manifest.requires, ...source.requires])], optional: [...new Set([...manifest.optional, ...source.optional])] },
    check: async (config) => await reportOf(() => settingsOf(config)),
    create (deps, config) {
      const settings = settingsOf(config)
      const builds = createBuilds(contextOf(deps, config, source.make(deps, config), clocks))
      const shares = createShares({ perOwner: settings.maxPerKey, inAll: settings.maxQueued + settings.concurrency, isOver: async (id) => builds.isOver(id), refuse: TooManyBuilds })
      return {
        start: async () => { await resumeShares(shares, deps.apiKeys, await builds.open()) },
        routes: buildRoutes({
          builds,
          maxSourceBytes: settings.maxSourceBytes,
          shares,
          rightsOf ({ principal }) {
            const may = (scope: string): boolean => principal !== null && deps.apiKeys.allows(principal, scope)
            const keyId = principal === null ? undefined : durableIdOf(principal)
            return { keyId, mayAdmin: may(SHARED_CACHES_SCOPE), mayReadImages: may('image:read'), mayWrite: (repository) => principal !== null && deps.apiKeys.mayWrite(principal, repository), hasNetwork: deps.network !== undefined, hasEgress: deps.egress !== undefined }
          }
        }),
        stop: async () => { await builds.close() }
      }
    }
  })
}

function contextOf (deps: Deps, config: BuildsConfig, runner: Context['runner'], clocks?: Clocks): Context {
  const { database, server: { dataDir, hostId } } = deps
  const settings = settingsOf(config)
  const repository = new BuildRepository(database, hostId, deps.journal ?? absentJournal(hostId))
  const builders = new BuilderRepository(database, hostId)
  return {
    log: deps.log.child({ plugin: manifest.id }),
    settings,
    repository,
    builders,
    runner,
    files: new BuildFiles(dataDir),
    disk: deps.disk,
    apiKeys: deps.apiKeys,
    queue: new BuildQueue(settings.concurrency),
    closing: new AbortController(),
    live: new Map(),
    images: deps.images,
    volumes: deps.volumes,
    secrets: new SecretFolder(settings.secretsDir),
    locks: createLocks(),
    later: new Set(),
    admission: createLine(),
    clock: createClock(clocks),
    metrics: createBuildMetrics(deps.metrics, {
      unfinished: async () => (await repository.unfinished()).map(({ status }) => status),
      builders: async () => (await builders.all()).length
    })
  }
}

export const plugin = buildsPlugin(realRunner)
