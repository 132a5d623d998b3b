// Receives the form of a new build: writes its source to the disk, in a folder that no build has yet.
import { createId } from '@paralleldrive/cuid2'
import { isDiskFull } from '../../../core/fs/disk-full.ts'
import type { Context } from '../context.ts'
import { DiskFull, QueueFull } from '../errors.ts'
import { typedFields } from './fields.ts'
import { readForm, type FormPart } from './form.ts'

export interface Upload {
  /** id of the later build */
  readonly id: string
  /** the fields of the form, with the types that they should have; `source` is the hash of the source */
  readonly body: Readonly<Record<string, unknown>>
}

/** On any error, removes everything it has written. */
export async function receive (context: Context, parts: AsyncIterable<FormPart>): Promise<Upload> {
  const { disk, files, settings } = context
  refuseMore(context)
  const id = createId()
  const watch = disk.watch()
  try {
    await disk.check()
    const paths = await files.beginUpload(id)
    const { fields, sourceHash } = await readForm(parts, { path: paths.source, maxBytes: settings.maxSourceBytes, max: settings.maxSource, watch })
    return { id, body: { ...typedFields(fields), ...sourceHash === undefined ? {} : { source: sourceHash } } }
  } catch (error) {
    await files.dropUpload(id)
    throw isDiskFull(error) ? DiskFull.from(error) : error
  } finally {
    watch.stop()
  }
}

/** @throws too_many_builds */
export function refuseMore ({ queue, settings }: Context): void {
  if (queue.waiting >= settings.maxQueued) throw QueueFull(settings.maxQueued)
}
