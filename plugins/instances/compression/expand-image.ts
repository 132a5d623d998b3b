// Makes a compressed image ready for a VM, which needs its memory uncompressed. The compressed file stays the one that counts until the image is taken.
import { rm } from 'node:fs/promises'
import { MemoryDamaged } from '../../../core/library/compressed-memory.ts'
import { bringMemory } from '../memory-image/bring.ts'
import { identityOf, pathsIn, type Context } from '../context.ts'
import { giveFile } from '../folder/files.ts'
import { markOf, rewriteImage, type StoredImage } from '../memory-image/files.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { logOperation } from '../folder/operations-log.ts'
import { memoryIn } from './compressed-image.ts'

/** The image with its memory file in place. When this rejects, the image is as it was, and still compressed. */
export async function expandImage (context: Context, instance: LiveInstance, stored: StoredImage): Promise<StoredImage> {
  const { compressed } = stored
  if (compressed === undefined) return stored
  const paths = pathsIn(context, instance.id)
  const began = performance.now()
  context.log.debug({ instance: instance.id, step: 'expand' }, 'memory image')
  // What a crash may have left.
  await rm(paths.memory, { force: true })
  try {
    const bytes = await context.metrics.timed('expand', async () => await bringMemory(context, memoryIn(paths, stored), paths.memory))
    if (bytes !== compressed.memoryBytes) throw MemoryDamaged(`it holds ${bytes} bytes and not ${compressed.memoryBytes}`)
    await giveFile(paths.memory, identityOf(context, instance.record))
    context.log.debug({ instance: instance.id, step: 'expanded' }, 'memory image')
    // This mark tells later whether a VM has run on the file.
    const expanded: StoredImage = { ...stored, memoryMark: await markOf(paths.memory) }
    await rewriteImage(paths, expanded)
    context.log.debug({ instance: instance.id, step: 'marked' }, 'memory image')
    await logOperation(paths.operations, `restore: memory expanded after ${Math.round(performance.now() - began)} ms`, context.log)
    return expanded
  } catch (error) {
    await rm(paths.memory, { force: true })
    throw error
  }
}
