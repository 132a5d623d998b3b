// The plugin "volumes": disks with a life of their own, which instances have attached.
import { reportOf } from '../../core/plugins/config-report.ts'
import { definePlugin } from '../../core/plugins/manifest.ts'
import { sizeBytes } from '../../core/config/quantities.ts'
import { absentJournal } from '../../core/db/absent-journal.ts'
import { createLocks } from '../../core/jobs/locks.ts'
import { Turns } from '../../core/jobs/turns.ts'
import { VolumeFiles } from './files.ts'
import { manifest, type VolumesConfig, type Deps } from './manifest.ts'
import { createVolumeMetrics } from './metrics.ts'
import { volumePaths } from './paths.ts'
import { GIB } from './record.ts'
import { VolumeRepository } from './repository.ts'
import { volumeRoutes } from './routes.ts'
import { Volumes } from './service.ts'

/** @throws Error that names the key */
function maxSizeGbOf ({ maxSize }: VolumesConfig): number {
  const maxSizeGb = Math.floor(sizeBytes(maxSize) / GIB)
  if (maxSizeGb < 1) throw new Error('plugins.volumes.config.maxSize: must be at least 1GB')
  return maxSizeGb
}

function compose (deps: Deps, config: VolumesConfig): Volumes {
  const { database, commands, disk, jobs, metrics, server: { dataDir, hostId } } = deps
  const maxSizeGb = maxSizeGbOf(config)
  const volumes: Volumes = new Volumes({
    log: deps.log.child({ plugin: manifest.id }),
    commands,
    disk,
    resources: deps.resources,
    files: new VolumeFiles(volumePaths(dataDir), commands),
    repository: new VolumeRepository(database, hostId, deps.journal ?? absentJournal(hostId)),
    // Of the three by default, two are those of one key, as many as it had before a turn was kept for others.
    turns: new Turns(config.archiveConcurrency, Math.max(1, config.archiveConcurrency - 1)),
    archives: jobs.queue('volume-archives', { concurrency: config.archiveConcurrency }),
    locks: createLocks(),
    later: new Set(),
    closing: new AbortController(),
    metrics: createVolumeMetrics(metrics, async () => await volumes.usage()),
    maxSizeGb,
    maxArchiveEntries: config.maxArchiveEntries
  })
  return volumes
}

export const plugin = definePlugin({
  manifest,
  check: async (config) => await reportOf(() => maxSizeGbOf(config)),
  create (deps, config) {
    const volumes = compose(deps, config)
    return {
      services: { volumes },
      start: async () => { await volumes.begin() },
      routes: volumeRoutes(volumes),
      stop: async () => { await volumes.end() }
    }
  }
})
