// The parts that every operation on builds uses, as one object.
import type { DiskSpace } from '../../core/fs/disk-space.ts'
import type { ApiKeys, Logger } from '../../core/contracts/services.ts'
import type { Line } from '../../core/db/line.ts'
import type { Locks } from '../../core/jobs/locks.ts'
import type { ImageService } from '../images/contract.ts'
import type { VolumeService } from '../instances/volumes/contract.ts'
import type { BuilderRepository } from './builders/repository.ts'
import type { Clock } from './clock.ts'
import { BuildLog } from './events/build-log.ts'
import type { BuildFiles } from './files.ts'
import type { LiveBuild } from './live-build.ts'
import type { BuildMetrics } from './metrics.ts'
import type { BuildQueue } from './queue/build-queue.ts'
import type { BuildRepository } from './repository.ts'
import type { ClosableRunner } from './runner-source.ts'
import type { SecretFolder } from './secrets/secret-folder.ts'
import type { BuildSettings } from './settings.ts'

export interface Context {
  readonly log: Logger
  readonly settings: BuildSettings
  readonly repository: BuildRepository
  readonly files: BuildFiles
  readonly disk: DiskSpace
  readonly apiKeys: Pick<ApiKeys, 'current'>
  readonly queue: BuildQueue
  /** aborts when the server stops */
  readonly closing: AbortController
  /** unfinished builds, by id */
  readonly live: Map<string, LiveBuild>
  readonly runner: ClosableRunner
  readonly images: ImageService
  readonly secrets: SecretFolder
  readonly metrics: BuildMetrics
  readonly builders: BuilderRepository
  readonly volumes: VolumeService
  /** by builder: held while a builder is changed or assigned */
  readonly locks: Locks
  /** what is tried again until it is done */
  readonly later: Set<string>
  /** in which uploads become builds: in one's turn, every unfinished build with a row is in `live` */
  readonly admission: Line
  readonly clock: Clock
}

/** Opens the log of a build, in its current folder. */
export async function openLog ({ log, settings }: Context, id: string, path: string): Promise<BuildLog> {
  return await BuildLog.open({
    path,
    maxBytes: settings.maxLogBytes,
    onError: (error) => { log.warn({ err: error, build: id }, 'a part of the log of a build could not be written') }
  })
}
