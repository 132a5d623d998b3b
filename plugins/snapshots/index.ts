// The plugin "snapshots": copies of instances at one moment, kept apart from any instance, taken on request or by a schedule.
import { durationMs } from '../../core/config/quantities.ts'
import { absentJournal } from '../../core/db/absent-journal.ts'
import { createLocks } from '../../core/jobs/locks.ts'
import { definePlugin, type Plugin } from '../../core/plugins/manifest.ts'
import { systemClock, type Clock } from './clock.ts'
import { createCompressor } from './compressor.ts'
import { SnapshotFiles } from './files.ts'
import { manifest, type SnapshotsConfig, type Deps } from './manifest.ts'
import { SnapshotRepository } from './repository.ts'
import { snapshotRoutes } from './routes.ts'
import { ScheduleRepository } from './schedules/repository.ts'
import { createSnapshots, type Snapshots } from './service.ts'

function compose (deps: Deps, config: SnapshotsConfig, clock: Clock): Snapshots {
  const { commands, database, server: { dataDir, hostId } } = deps
  const log = deps.log.child({ plugin: manifest.id })
  const locks = createLocks()
  const repository = new SnapshotRepository(database, hostId, deps.journal ?? absentJournal(hostId))
  const files = new SnapshotFiles(dataDir)
  const compressor = createCompressor({ log, commands, disk: deps.disk, queue: deps.jobs.queue('compression', { concurrency: 1 }), repository, files, locks })
  return createSnapshots(
    { log, commands, images: deps.images, copies: deps.instanceCopies, repository, files, locks, compressor, clock, closing: new AbortController() },
    new ScheduleRepository(database, hostId),
    durationMs(config.scheduleInterval)
  )
}

/** The plugin with another clock, for tests. */
export function snapshotsPlugin (clock: Clock): Plugin {
  return definePlugin({
    manifest,
    create (deps, config) {
      const snapshots = compose(deps, config, clock)
      return {
        start: async () => { await snapshots.open() },
        routes: snapshotRoutes(snapshots),
        stop: async () => { await snapshots.close() }
      }
    }
  })
}

export const plugin = snapshotsPlugin(systemClock)
