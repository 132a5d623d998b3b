// What every operation on snapshots works with, as one object.
import type { HostCommands, Logger } from '../../core/contracts/services.ts'
import type { Locks } from '../../core/jobs/locks.ts'
import type { ImageService } from '../images/contract.ts'
import type { InstanceCopies } from '../instances/contract.ts'
import type { Clock } from './clock.ts'
import type { Compressor } from './compressor.ts'
import type { SnapshotFiles } from './files.ts'
import type { SnapshotRepository } from './repository.ts'

export interface Context {
  readonly log: Logger
  readonly commands: HostCommands
  readonly images: ImageService
  readonly copies: InstanceCopies
  readonly repository: SnapshotRepository
  readonly files: SnapshotFiles
  /** by snapshot id: shared by those who read its files, held alone by those who change or remove them */
  readonly locks: Locks
  readonly compressor: Compressor
  readonly clock: Clock
  /** aborts when the server stops */
  readonly closing: AbortController
}
