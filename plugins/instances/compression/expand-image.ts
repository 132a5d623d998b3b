// Makes a compressed image ready for a VM, which runs on its memory as it is. The compressed memory goes on counting until the image is taken.
import { rm } from 'node:fs/promises'
import { MemoryDamaged } from '../../../core/library/compressed-memory.ts'
import { bringMemory } from '../memory-image/bring.ts'
import { identityOf, pathsIn, type Context } from '../context.ts'
import { giveFile } from '../folder/files.ts'
import { markOf, rewriteImage, type StoredImage } from '../memory-image/files.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { logOperation } from '../folder/operations-log.ts'
import { memoryIn } from './compressed-image.ts'

/** The image with its memory in place. It is as it was, and still compressed, when this rejects. */
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
    // By this mark it is known whether a VM has run on it.
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
