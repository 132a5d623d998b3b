// Gives back the hold on the image of what did not become an instance.
import { nowOrLater } from '../../../core/jobs/now-or-later.ts'
import type { BaseContext } from '../context.ts'
import { imageHolder } from '../model/record.ts'
import { doLater } from '../parts/later.ts'

/** Its row goes whatever happens, so nobody else would come back to it: what fails is tried again. Rejects all the same. */
export async function releaseImage (context: BaseContext, digest: string, id: string): Promise<void> {
  const release = async (): Promise<void> => { await context.images.release(digest, imageHolder(id)) }
  await nowOrLater(release, () => { doLater(context, 'image', id, release) })
}
