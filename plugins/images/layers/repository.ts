// The table of layers. Its rows come and go with those of contents, in the same transactions.
import type { Knex } from 'knex'
import type { Layer, Layers } from './layers.ts'

interface Row {
  content_id: string
  place: number
  digest: string
  media_type: string | null
  // MySQL's driver may give a bigint as text
  size_bytes: number | string
  created_by: string | null
}

const TABLE = 'images_layers'
const CONTENTS = 'images_contents'
/** SQLite takes a limited number of values in one statement. */
const ROWS_AT_ONCE = 50

/** A layer of an image that is here. */
export interface KnownLayer extends Layer {
  /** the command that made it */
  readonly createdBy: string | undefined
  /** how many other images of this host have it */
  readonly sharedBy: number
}

/** Takes the place of what is known of the content's layers. */
export async function putLayers (trx: Knex, contentId: string, { kept }: Layers): Promise<void> {
  await removeLayers(trx, contentId)
  const rows = kept.map(({ digest, mediaType, sizeBytes }, place): Row => ({ content_id: contentId, place, digest, media_type: mediaType ?? null, size_bytes: sizeBytes, created_by: null }))
  for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) await trx<Row>(TABLE).insert(rows.slice(from, from + ROWS_AT_ONCE))
}

/** Notes the commands that made the layers; `''` for none. */
export async function putHistory (trx: Knex, contentId: string, commands: readonly string[]): Promise<void> {
  for (const [place, command] of commands.entries()) if (command !== '') await trx<Row>(TABLE).where({ content_id: contentId, place }).update({ created_by: command })
}

export async function removeLayers (trx: Knex, contentId: string): Promise<void> {
  await trx<Row>(TABLE).where({ content_id: contentId }).delete()
}

/** The lowest first. */
export async function knownLayers (knex: Knex, contentId: string, hostId: string): Promise<KnownLayer[]> {
  const rows = await knex<Row>(TABLE).where({ content_id: contentId }).orderBy('place')
  const others: ReadonlyArray<{ readonly digest: string, readonly images: number | string }> = await knex(`${TABLE} as mine`)
    .join(`${TABLE} as other`, 'other.digest', 'mine.digest')
    .join(CONTENTS, `${CONTENTS}.id`, 'other.content_id')
    .where('mine.content_id', contentId).whereNot('other.content_id', contentId).where({ [`${CONTENTS}.host_id`]: hostId, [`${CONTENTS}.status`]: 'ready' })
    .groupBy('mine.digest').select('mine.digest').countDistinct({ images: 'other.content_id' })
  const shared = new Map(others.map(({ digest, images }) => [digest, Number(images)]))
  return rows.map((row) => ({ digest: row.digest, mediaType: row.media_type ?? undefined, sizeBytes: Number(row.size_bytes), createdBy: row.created_by ?? undefined, sharedBy: shared.get(row.digest) ?? 0 }))
}
