// Compresses the memory of snapshots in the background, one at a time on the whole host, and replaces the raw memory by the result.
import type { HostCommands, JobQueue, Logger } from '../../core/contracts/services.ts'
import { CompressionFailed, compressWithRoom, type Compression } from '../../core/library/compressed-memory.ts'
import type { DiskSpace } from '../../core/fs/disk-space.ts'
import { isDiskFull } from '../../core/fs/disk-full.ts'
import type { Locks } from '../../core/jobs/locks.ts'
import { nowOrLater } from '../../core/jobs/now-or-later.ts'
import { untilDone } from '../../core/jobs/until-done.ts'
import { HostCommandMissing } from '../../core/process/errors.ts'
import type { SnapshotFiles } from './files.ts'
import { imageHolder } from './record.ts'
import type { SnapshotRepository } from './repository.ts'

export interface Compressor {
  /** Begins the compression, or puts it in the queue. Nobody waits for it; the row has the outcome. */
  begin (id: string): void
  /** Resolves when nothing works on that snapshot any more. The next server begins a compression that was cut off again. */
  cancel (id: string): Promise<void>
  close (): Promise<void>
}

export interface CompressorParts {
  readonly log: Logger
  readonly commands: HostCommands
  readonly queue: JobQueue
  readonly repository: SnapshotRepository
  readonly files: SnapshotFiles
  readonly disk: DiskSpace
  readonly locks: Locks
}

export function createCompressor (parts: CompressorParts): Compressor {
  const { queue } = parts
  const closing = new AbortController()
  const underWay = new Map<string, Promise<void>>()
  const cancel = async (id: string): Promise<void> => {
    queue.cancel(jobOf(id))
    await underWay.get(id)
  }
  return {
    begin (id) {
      const work = run(parts, id, closing.signal).finally(() => { underWay.delete(id) })
      underWay.set(id, work)
    },
    cancel,
    async close () {
      closing.abort()
      await Promise.all([...underWay.keys()].map(cancel))
    }
  }
}

// The queue is shared with others that compress.
function jobOf (id: string): string {
  return imageHolder(id)
}

/** Never rejects. @param closing aborts when the server ends */
async function run (parts: CompressorParts, id: string, closing: AbortSignal): Promise<void> {
  const { queue, log, repository } = parts
  let cut = true
  try {
    await queue.push(jobOf(id), async (signal) => {
      cut = false
      try {
        await compress(parts, id, signal)
      } finally {
        cut = signal.aborted
      }
    })
  } catch (error) {
    // Cancelled while it ran or waited: either the snapshot is being deleted, or the next server begins the compression again.
    if (cut) return
    log.error({ err: error, snapshot: id }, 'the memory of a snapshot could not be compressed')
    const note = async (): Promise<void> => {
      await repository.setCompressionError(id, reasonOf(error))
      await tidy(parts, id)
    }
    // Nobody compresses it any more, so it must not say so until the next start. Does nothing to one that was deleted, or is compressed after all.
    await nowOrLater(note, () => { void untilDone(note, closing) }).catch((failure: unknown) => { log.error({ err: failure, snapshot: id }, 'nor could that be stored yet') })
  }
}

async function compress (parts: CompressorParts, id: string, signal: AbortSignal): Promise<void> {
  const { repository, files } = parts
  const record = await repository.find(id)
  // The snapshot was deleted before its turn came.
  if (record?.status !== 'ready' || record.compression === null) return
  const { compression } = record
  try {
    const making = await files.beginCompression(id, compression.algorithm)
    const bytes = await compressWithRoom(parts, files.raw(id).memory.path, making, compression, signal)
    await swap(parts, id, compression, bytes)
  } finally {
    await files.dropCompression(id, compression.algorithm)
  }
}

/** Makes the compressed memory the one that counts, while nobody reads the raw one. */
async function swap ({ repository, files, locks }: CompressorParts, id: string, { algorithm }: Compression, bytes: number): Promise<void> {
  await locks.hold(id, async () => {
    await files.finishCompression(id, algorithm)
    // If storing this fails, both files stay, since it may have been stored all the same. The one that does not count goes once that is known.
    if (await repository.setCompressed(id, bytes)) await files.removeRawMemory(id)
  })
}

/** Removes the memory that does not count, after a compression whose end may have been stored or not. */
async function tidy ({ repository, files, locks }: CompressorParts, id: string): Promise<void> {
  await locks.hold(id, async () => {
    const record = await repository.findReady(id)
    if (record !== undefined) await files.tidy(record)
  })
}

/** The error in words for callers of the API; the log has the rest. */
function reasonOf (error: unknown): string {
  if (isDiskFull(error)) return 'the disk of the data folder is full'
  if (CompressionFailed.is(error) || HostCommandMissing.is(error)) return error.message
  return 'the compression failed; the log of the server says why'
}
