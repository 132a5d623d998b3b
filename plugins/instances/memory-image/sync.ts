// Writes the image of an instance in standby to the disk, after the standby has been answered, since that takes as long as the disk does. Afterwards the image may be compressed.
import { compressLater } from '../compression/compress-image.ts'
import { pathsIn, type Context } from '../context.ts'
import { markDurable, readImage, syncImage } from './files.ts'
import type { LiveInstance } from '../model/live-instance.ts'

/** Begins the writing. Until it is done, a power cut costs the image; the next start of the server finds that out and says so. */
export function settleImage (context: Context, instance: LiveInstance): void {
  sync(context, instance).catch((error: unknown) => {
    context.log.error({ err: error, instance: instance.id }, 'a memory image could not be written to the disk; a power cut would lose it')
  })
}

async function sync (context: Context, instance: LiveInstance): Promise<void> {
  const paths = pathsIn(context, instance.id)
  const standbyAt = instance.record.standbyAt
  const isSame = (): boolean => !context.closing.signal.aborted && !instance.deleted && instance.record.standbyAt === standbyAt
  try {
    await syncImage(paths)
  } catch (error) {
    // The instance may have been restored or deleted meanwhile, or this is happening now: whoever does that holds the lock, and takes the files before the row says so.
    await context.locks.hold(instance.id, async () => { if (isSame()) throw error })
    return
  }
  await context.locks.hold(instance.id, async () => {
    const stored = isSame() ? await readImage(paths, 'whole') : undefined
    if (stored === undefined) return
    await markDurable(paths, stored)
    compressLater(context, instance, { ...stored, bootId: null })
  })
}
