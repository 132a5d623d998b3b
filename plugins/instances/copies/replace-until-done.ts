// Replaces disk and memory of an instance, now or as soon as that can be done: a database or a disk that fails for a moment must not cost an instance.
import { pathsIn, type Context } from '../context.ts'
import { readImage } from '../memory-image/files.ts'
import { settleImage } from '../memory-image/sync.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { doLater } from '../parts/later.ts'

/**
 * When `work` fails it is tried again until it is done, and until then the instance is Unknown: nobody may start or restore it. The next start of the server goes on with what is left.
 * @param by whose files replace its own
 * @param work can be repeated, and finishes the replacement
 * @throws the first failure
 */
export async function replaceUntilDone (context: Context, instance: LiveInstance, by: string, work: () => Promise<void>): Promise<void> {
  const attempt = async (): Promise<void> => {
    try {
      await work()
      const stored = await readImage(pathsIn(context, instance.id), 'whole')
      instance.setImageProblem(stored?.problem)
    } catch (error) {
      instance.setProblem(`its disk and memory could not be replaced by ${by} yet; it is tried again (${error instanceof Error ? error.message : String(error)})`)
      throw error
    }
  }
  try {
    await attempt()
  } catch (error) {
    doLater(context, 'replacement', instance.id, async () => {
      // A delete removes all of it; what a server leaves the next one finds.
      if (instance.record.status !== 'active' || instance.deleted || context.closing.signal.aborted) return
      await attempt()
      instance.setProblem(undefined)
      if (instance.record.standbyAt !== null) settleImage(context, instance)
    })
    throw error
  }
}
