// The plugin "pushes": images copied from here to other registries.
import { join } from 'node:path'
import { resumeShares } from '../../core/jobs/resume-shares.ts'
import { durationMs } from '../../core/config/quantities.ts'
import { absentJournal } from '../../core/db/absent-journal.ts'
import { definePlugin } from '../../core/plugins/manifest.ts'
import { createShares } from '../../core/jobs/shares.ts'
import { createCopier } from './copy.ts'
import { TooManyPushes } from './errors.ts'
import { createFolders } from './folders.ts'
import { manifest, type PushesConfig, type Deps } from './manifest.ts'
import { createPushesMetrics } from './metrics.ts'
import { PushRepository } from './repository.ts'
import { pushRoutes } from './routes.ts'
import { createRunner, type Runner } from './runner.ts'
import { Pushes } from './service.ts'

function compose (deps: Deps, config: PushesConfig): Pushes {
  const { database, imageSources, registry, server: { dataDir, hostId } } = deps
  const log = deps.log.child({ plugin: manifest.id })
  const repository = new PushRepository(database, hostId, deps.journal ?? absentJournal(hostId))
  const folders = createFolders(join(dataDir, 'pushes'))
  const runner: Runner = createRunner({
    log,
    repository,
    queue: deps.jobs.queue(manifest.id, { concurrency: config.concurrency }),
    copy: createCopier({ folders, sources: imageSources, timeoutMs: durationMs(config.pushTimeout) }),
    apiKeys: deps.apiKeys,
    metrics: createPushesMetrics(deps.metrics, () => runner.waiting()),
    keepFinished: config.keepFinished
  })
  return new Pushes({ repository, folders, runner, sources: imageSources, isOwn: (host) => registry?.isLocal(host) === true })
}

export const plugin = definePlugin({
  manifest,
  create (deps, config) {
    const { apiKeys } = deps
    const pushes = compose(deps, config)
    const shares = createShares({ perOwner: config.maxPushesPerKey, inAll: config.maxPushes, isOver: async (id) => await pushes.isOver(id), refuse: TooManyPushes })
    return {
      start: async () => { await resumeShares(shares, apiKeys, await pushes.open()) },
      routes: pushRoutes({
        pushes,
        shares,
        apiKeys
      }),
      stop: async () => { await pushes.close() }
    }
  }
})
