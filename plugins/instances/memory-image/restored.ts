// At the first start after `berth restore`: images that were not synced yet when the backup was made are on the disk now, and outlive the boot that their backup was made in.
import { forgetRestored, restoredBoots } from '../../../core/data/restored.ts'
import { pathsIn, type Context } from '../context.ts'
import { pathsAt, type InstancePaths } from '../folder/paths.ts'
import type { InstanceRecord } from '../model/record.ts'
import { markDurable, readImage, type ImageStage } from './files.ts'

/** Before any instance is taken over, and so before a new image can be made. */
export async function settleRestored (context: Context, records: readonly InstanceRecord[]): Promise<void> {
  const boots = await restoredBoots(context.dataDir)
  if (boots.size === 0) return
  for (const { id } of records) {
    const paths = pathsIn(context, id)
    const places: readonly [InstancePaths, ImageStage][] = [[paths, 'whole'], [paths, 'taken'], [pathsAt(paths.kept.whole), 'whole']]
    for (const [place, stage] of places) {
      await settle(place, stage, boots).catch((error: unknown) => { context.log.warn({ err: error, instance: id }, 'a memory image could not be noted as restored; after a reboot of the host it would be taken for lost') })
    }
  }
  await forgetRestored(context.dataDir)
}

async function settle (paths: InstancePaths, stage: ImageStage, boots: ReadonlySet<string>): Promise<void> {
  const stored = await readImage(paths, stage)
  if (stored !== undefined && stored.bootId !== null && boots.has(stored.bootId)) await markDurable(paths, stored, stage)
}
