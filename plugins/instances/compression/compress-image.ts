// Compresses the image of an instance in standby, in the background. Killed at any step, the image is as it was before or as it is after.
import { lstat, rm } from 'node:fs/promises'
import { compressWithRoom, type Compression } from '../../../core/library/compressed-memory.ts'
import { pathsIn, type Context } from '../context.ts'
import { isUntouched, readImage, type StoredImage } from '../memory-image/files.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { logOperation } from '../folder/operations-log.ts'
import { compressedPath, noteCompressed } from './compressed-image.ts'
import { compressionFor } from './compression-for.ts'

/** Plans the compression that an image is to have. Does nothing when it is to have none, is compressed already, or is not on the disk yet. */
export function compressLater (context: Context, instance: LiveInstance, stored: StoredImage): void {
  const wanted = wantedBy(context, instance, stored)
  // What differs from a base is little, and not compressed.
  if (wanted === null || stored.onBase !== undefined || stored.compressed !== undefined || stored.bootId !== null || context.closing.signal.aborted) return
  const began = performance.now()
  const { operations } = pathsIn(context, instance.id)
  context.compressions.plan(instance.id, left(wanted), {
    write: async (signal) => { await write(context, instance, wanted, signal) },
    commit: async (signal) => { await commit(context, instance, stored, wanted, signal) },
    async failed (error) {
      context.log.error({ err: error, instance: instance.id }, 'a memory image could not be compressed; it stays as it is')
      await logOperation(operations, `error: compression: failed after ${Math.round(performance.now() - began)} ms, the image stays as it is: ${error instanceof Error ? error.message : String(error)}`, context.log)
    }
  })
}

/** The rest of the delay. After a restart of the server only the clock tells how much of it has passed. */
function left ({ notBefore, delayMs = Infinity }: NonNullable<StoredImage['wanted']>): number {
  return Math.max(0, Math.min(notBefore - Date.now(), delayMs))
}

/** An image that came by a fork or a snapshot was asked for in no request: the policy of its instance holds. */
function wantedBy (context: Context, { record }: LiveInstance, { wanted }: StoredImage): NonNullable<StoredImage['wanted']> | null {
  if (wanted !== undefined) return wanted
  const compression = compressionFor(undefined, record.spec, context.settings.compression)
  return compression === undefined ? null : { ...compression, notBefore: 0 }
}

async function write (context: Context, instance: LiveInstance, wanted: Compression, signal: AbortSignal): Promise<void> {
  const paths = pathsIn(context, instance.id)
  const target = compressedPath(paths, 'whole', wanted.algorithm)
  // A compression that was cut off just before it counted may have left its file.
  await rm(target, { force: true })
  context.log.debug({ instance: instance.id, step: 'compress' }, 'memory image')
  await context.metrics.timed('compress', async () => { await compressWithRoom(context, paths.memory, target, wanted, signal) })
  context.log.debug({ instance: instance.id, step: 'compressed' }, 'memory image')
}

async function commit (context: Context, instance: LiveInstance, stored: StoredImage, { algorithm, level }: Compression, signal: AbortSignal): Promise<void> {
  const paths = pathsIn(context, instance.id)
  await context.locks.hold(instance.id, async () => {
    const now = instance.deleted ? undefined : await readImage(paths, 'whole')
    if (signal.aborted || now === undefined || !isSame(now, stored) || !await isUntouched(paths, stored)) {
      if (now?.compressed === undefined) await rm(compressedPath(paths, 'whole', algorithm), { force: true })
      return
    }
    // The kept VM runs on the memory file that is about to be removed.
    await context.kept.end(instance.id, 'changed')
    const { size: bytes } = await lstat(compressedPath(paths, 'whole', algorithm))
    const memory = await lstat(paths.memory)
    await noteCompressed(paths, now, { algorithm, level, bytes, memoryBytes: memory.size })
    context.log.debug({ instance: instance.id, step: 'noted' }, 'memory image')
    await rm(paths.memory, { force: true })
    context.log.debug({ instance: instance.id, step: 'removed' }, 'memory image')
    await logOperation(paths.operations, `compression: done by ${algorithm} ${level}: ${kib(memory.blocks * 512)} of memory became ${kib(bytes)}`, context.log)
  })
}

function kib (bytes: number): string {
  return `${Math.ceil(bytes / 1024)} KiB`
}

/** Whether it is still the image that was to be compressed, and not a later one. */
function isSame (now: StoredImage, before: StoredImage): boolean {
  return now.compressed === undefined && now.memoryMark === before.memoryMark && now.image.capturedAt === before.image.capturedAt
}
