// Waits until the memory image of an instance in standby is on the disk, which is after the standby has been answered.
import { setTimeout as delay } from 'node:timers/promises'
import { readImage } from '../plugins/instances/memory-image/files.ts'
import { pathsOf } from '../plugins/instances/folder/paths.ts'
import type { Berth } from './berth.ts'

/** Waits until the host has written the image to its disk, so that the writing does not overlap with a measurement. No event reports this: the image itself has to be checked. */
export async function imageOnDisk ({ server }: Berth, id: string): Promise<void> {
  const paths = pathsOf(server.dataDir, id)
  for (;;) {
    const image = await readImage(paths, 'whole')
    if (image === undefined) throw new Error(`instance ${id} has no memory image`)
    if (image.bootId === null) return
    await delay(50)
  }
}
