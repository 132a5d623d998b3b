// The tables of the images plugin: names, contents, aliases and holders of one host.
import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { createChanges, type ChangeAction, type Changes, type Journal, type Note, type ResourceState } from '../../core/db/changes.ts'
import { pageOf, whereIs, whereTags, type RowOrder } from '../../core/db/page.ts'
import { inTransaction } from '../../core/db/transaction.ts'
import type { Found, WholePage } from '../../core/http/list.ts'
import type { ImageStatus } from './contract.ts'
import type { StoredContent } from './folders.ts'
import { knownLayers, putHistory, putLayers, removeLayers, type KnownLayer } from './layers/repository.ts'
import type { Layers } from './layers/layers.ts'
import { present, type AttemptState, type ContentRow, type TagRow } from './record.ts'
import { contentOf, digestsOf, tagOf, type StoredContentRow, type StoredTagRow } from './rows.ts'

export interface NewContent { readonly digest: string, readonly repository: string, readonly platform: string, readonly layerBytes: number, readonly recompress: boolean, readonly layers?: Layers }
export interface NewTag { readonly name: string, readonly repository: string, readonly tags: Readonly<Record<string, string>> | undefined }

const TAGS = 'images_tags'
const CONTENTS = 'images_contents'
const ALIASES = 'images_aliases'
const HOLDERS = 'images_holders'
const ORDER = { columns: { name: `${TAGS}.name`, created_at: `${TAGS}.created_at` }, id: `${TAGS}.name`, tie: `${TAGS}.id` } as const satisfies RowOrder<string>
/** The status of a name, as `present` computes it, for rows with joined contents. */
const STATUS = `case when ${TAGS}.digest is null and ${TAGS}.state <> 'resolved' then case ${TAGS}.state when 'failed' then 'failed' else 'pending' end else coalesce(${CONTENTS}.status, 'pending') end`

export interface ImageFilter { readonly name?: string, readonly status?: ImageStatus, readonly tags?: Readonly<Record<string, string>> }

type TagQuery = Knex.QueryBuilder<StoredTagRow, StoredTagRow[]>
type ContentQuery = Knex.QueryBuilder<StoredContentRow, StoredContentRow[]>

export class ImagesRepository {
  readonly #knex: Knex
  readonly #hostId: string
  readonly #now: () => number
  readonly #changes: Changes

  constructor (knex: Knex, hostId: string, now: () => number = Date.now, journal?: Journal) {
    this.#knex = knex
    this.#hostId = hostId
    this.#now = now
    this.#changes = createChanges(knex, journal, { resource: 'image', scope: 'image:read', isComposed: true, list: async () => await this.#states(knex, await this.#tags().where({ host_id: hostId })) })
  }

  async tag (name: string): Promise<TagRow | undefined> {
    const row = await this.#findTag(name)
    return row === undefined ? undefined : tagOf(row)
  }

  /** The image that has this alias. */
  async aliased (alias: string): Promise<TagRow | undefined> {
    const row: StoredTagRow | undefined = await this.#tags().select(`${TAGS}.*`)
      .join(ALIASES, `${ALIASES}.tag_id`, `${TAGS}.id`).where(`${ALIASES}.id`, this.#key(alias)).first()
    return row === undefined ? undefined : tagOf(row)
  }

  async tags (): Promise<TagRow[]> {
    const rows: StoredTagRow[] = await this.#tags().where({ host_id: this.#hostId })
    return rows.map(tagOf)
  }

  async page ({ name, status, tags }: ImageFilter, page: WholePage<keyof typeof ORDER.columns>): Promise<Found<TagRow>> {
    const found = await pageOf<StoredTagRow, keyof typeof ORDER.columns>(() => this.#tags().where(`${TAGS}.host_id`, this.#hostId).select(`${TAGS}.*`), (query) => {
      if (name !== undefined) whereIs(query, `${TAGS}.name`, name)
      if (status !== undefined) {
        query.leftJoin(CONTENTS, (join: Knex.JoinClause) => {
          join.on(`${CONTENTS}.host_id`, `${TAGS}.host_id`).on(`${CONTENTS}.digest`, this.#knex.raw('coalesce(??, ??)', [`${TAGS}.digest`, `${TAGS}.next_digest`]))
        }).whereRaw(`${STATUS} = ?`, [status])
      }
      whereTags(query, `${TAGS}.tags`, tags)
      return { isNarrow: name !== undefined }
    }, ORDER, page)
    return { ...found, items: found.items.map(tagOf) }
  }

  /** The contents that these names mean, or will mean. */
  async contentsOf (tags: readonly TagRow[]): Promise<ContentRow[]> {
    const digests = new Set(tags.flatMap(({ digest, nextDigest }) => [digest, nextDigest]).filter((digest) => digest !== undefined))
    const rows: StoredContentRow[] = await this.#contents().whereIn('id', [...digests].map((digest) => this.#key(digest)))
    return rows.map(contentOf)
  }

  /** A name in this repository that means, or will mean, this digest. */
  async sibling (repository: string, digest: string): Promise<TagRow | undefined> {
    const rows: StoredTagRow[] = await this.#pointing(digest)
    const row = rows.find((candidate) => candidate.repository === repository)
    return row === undefined ? undefined : tagOf(row)
  }

  /** The names that mean, or will mean, this digest. */
  async names (digest: string): Promise<string[]> {
    const rows: StoredTagRow[] = await this.#pointing(digest)
    return rows.map((row) => row.name)
  }

  /** The repositories of those names. */
  async repositories (digest: string): Promise<string[]> {
    const rows: StoredTagRow[] = await this.#pointing(digest)
    return [...new Set(rows.map((row) => row.repository))]
  }

  /** Stores that an attempt for a name is under way; true when the name is new. Tags are replaced when given. */
  async beginAttempt (tag: NewTag): Promise<boolean> {
    return await this.#changes.commit(async (trx, note) => {
      const before = await this.#findTag(tag.name, trx)
      const change = { state: 'resolving' as const, error: null, ...tag.tags === undefined ? {} : { tags: JSON.stringify(tag.tags) } }
      if (before === undefined) await this.#tags(trx).insert({ ...this.#newTag(tag), ...change })
      else await this.#tags(trx).where({ id: before.id }).update(change)
      await this.#note(trx, note, before === undefined ? 'created' : 'updated', this.#named(trx, tag.name))
      return before === undefined
    })
  }

  async endAttempt (name: string, state: AttemptState, error?: string): Promise<void> {
    await this.#changes.commit(async (trx, note) => {
      await this.#tags(trx).where({ id: this.#key(name) }).update({ state, error: error ?? null })
      await this.#note(trx, note, 'updated', this.#named(trx, name))
    })
  }

  /** Points a name at a content: at once when that is ready, else once it will be. Returns the digests it pointed at before; undefined when the name is gone. */
  async point (name: string, digest: string, when: 'now' | 'when-ready'): Promise<string[] | undefined> {
    return await this.#changes.commit(async (trx, note) => {
      const before = await this.#findTag(name, trx)
      if (before === undefined) return undefined
      const to = when === 'now' ? { digest, next_digest: null } : { next_digest: digest }
      await this.#tags(trx).where({ id: before.id }).update({ ...to, state: 'resolved', error: null })
      await this.#note(trx, note, 'updated', this.#named(trx, name))
      return digestsOf(before)
    })
  }

  /** Makes a name, new or not, mean a ready content. Returns the digests it pointed at before; undefined when the content is gone. */
  async assign (tag: NewTag, digest: string): Promise<string[] | undefined> {
    return await this.#changes.commit(async (trx, note) => {
      if ((await this.#locked(trx, digest))?.status !== 'ready') return undefined
      const before = await this.#findTag(tag.name, trx)
      const change = { digest, next_digest: null, state: 'resolved' as const, error: null, ...tag.tags === undefined ? {} : { tags: JSON.stringify(tag.tags) } }
      if (before === undefined) await this.#tags(trx).insert({ ...this.#newTag(tag), ...change })
      else await this.#tags(trx).where({ id: before.id }).update(change)
      await this.#note(trx, note, before === undefined ? 'created' : 'updated', this.#named(trx, tag.name))
      return before === undefined ? [] : digestsOf(before)
    })
  }

  /** Removes a name and its aliases; returns the digests it pointed at, or undefined when there was none. */
  async removeTag (name: string): Promise<string[] | undefined> {
    return await this.#changes.commit(async (trx, note) => {
      const before = await this.#findTag(name, trx)
      if (before === undefined) return undefined
      await this.#note(trx, note, 'deleted', this.#named(trx, name))
      await trx(ALIASES).where({ tag_id: before.id }).delete()
      await this.#tags(trx).where({ id: before.id }).delete()
      return digestsOf(before)
    })
  }

  async addAlias (alias: string, name: string): Promise<void> {
    await this.#knex(ALIASES).insert({ id: this.#key(alias), alias, tag_id: this.#key(name) }).onConflict('id').merge()
  }

  async content (digest: string): Promise<ContentRow | undefined> {
    const row: StoredContentRow | undefined = await this.#contents().where({ id: this.#key(digest) }).first()
    return row === undefined ? undefined : contentOf(row)
  }

  async contents (): Promise<ContentRow[]> {
    const rows: StoredContentRow[] = await this.#contents().where({ host_id: this.#hostId })
    return rows.map(contentOf)
  }

  /** Stores that a content is wanted; an earlier failure of it is forgotten. */
  async wantContent (content: NewContent): Promise<void> {
    const row: StoredContentRow = {
      id: this.#key(content.digest),
      host_id: this.#hostId,
      digest: content.digest,
      repository: content.repository,
      status: 'pending',
      error: null,
      platform: content.platform,
      layer_bytes: content.layerBytes,
      recompress: content.recompress ? 1 : 0,
      layer_count: content.layers?.count ?? null,
      size_bytes: null,
      config: null,
      created_at: this.#now()
    }
    await this.#changes.commit(async (trx, note) => {
      await this.#contents(trx).insert(row).onConflict('id').merge()
      await (content.layers === undefined ? removeLayers(trx, row.id) : putLayers(trx, row.id, content.layers))
      await this.#note(trx, note, 'updated', this.#pointing(content.digest, trx))
    })
  }

  async setStatus (digest: string, status: ImageStatus, error?: string): Promise<void> {
    await this.#changes.commit(async (trx, note) => {
      await this.#contents(trx).where({ id: this.#key(digest) }).update({ status, error: error ?? null })
      await this.#note(trx, note, 'updated', this.#pointing(digest, trx))
    })
  }

  /** Stores from where a content is pulled now. */
  async setSource (digest: string, repository: string): Promise<void> {
    await this.#contents().where({ id: this.#key(digest) }).update({ repository })
  }

  /** The repositories of the names that wait for a content. */
  async awaitedRepositories (digest: string): Promise<string[]> {
    const rows: StoredTagRow[] = await this.#tags().where({ host_id: this.#hostId, next_digest: digest })
    return [...new Set(rows.map((row) => row.repository))]
  }

  /** Marks a content ready and moves every name that waited for it. Returns the digests these had before; undefined when nobody wants it any more. */
  async finish (stored: StoredContent): Promise<string[] | undefined> {
    return await this.#changes.commit(async (trx, note) => {
      const changed = await this.#contents(trx).where({ id: this.#key(stored.digest) }).update({
        status: 'ready', error: null, platform: stored.platform, size_bytes: stored.sizeBytes, config: JSON.stringify(stored.run)
      })
      if (changed === 0) return undefined
      await putHistory(trx, this.#key(stored.digest), stored.createdBy ?? [])
      const waiting: StoredTagRow[] = await this.#tags(trx).where({ host_id: this.#hostId, next_digest: stored.digest })
      await this.#tags(trx).where({ host_id: this.#hostId, next_digest: stored.digest }).update({ digest: stored.digest, next_digest: null })
      await this.#note(trx, note, 'updated', this.#pointing(stored.digest, trx))
      return waiting.flatMap(digestsOf).filter((digest) => digest !== stored.digest)
    })
  }

  /** Begins the removal of a content that neither a name nor a holder uses: from then on it is not ready, so nobody can hold it. True when its files are to go, and after them its row (`removeContent`). */
  async giveUpContent (digest: string): Promise<boolean> {
    return await inTransaction(this.#knex, async (trx) => {
      if (await this.#locked(trx, digest) === undefined) return false
      if (await this.#pointing(digest, trx).first() !== undefined || await trx(HOLDERS).where({ content_id: this.#key(digest) }).first() !== undefined) return false
      await this.#contents(trx).where({ id: this.#key(digest) }).update({ status: 'pending' })
      return true
    })
  }

  /** Removes the row of a content that was given up and has no files any more. */
  async removeContent (digest: string): Promise<void> {
    await inTransaction(this.#knex, async (trx) => {
      await removeLayers(trx, this.#key(digest))
      await this.#contents(trx).where({ id: this.#key(digest) }).delete()
    })
  }

  /** False when there is no ready content of that digest. */
  async hold (digest: string, holder: string): Promise<boolean> {
    return await inTransaction(this.#knex, async (trx) => {
      if ((await this.#locked(trx, digest))?.status !== 'ready') return false
      await trx(HOLDERS).insert({ content_id: this.#key(digest), holder }).onConflict(['content_id', 'holder']).ignore()
      return true
    })
  }

  async release (digest: string, holder: string): Promise<void> {
    await this.#knex(HOLDERS).where({ content_id: this.#key(digest), holder }).delete()
  }

  /** What holders of a kind (`kind:id`) hold on this host. */
  async heldBy (kind: string): Promise<ReadonlyArray<{ readonly digest: string, readonly holder: string }>> {
    const rows: ReadonlyArray<{ readonly digest: string, readonly holder: string }> = await this.#knex(HOLDERS).join(CONTENTS, `${CONTENTS}.id`, `${HOLDERS}.content_id`)
      .where(`${CONTENTS}.host_id`, this.#hostId).where(`${HOLDERS}.holder`, 'like', `${kind}:%`).select(`${CONTENTS}.digest`, `${HOLDERS}.holder`)
    return rows
  }

  /** Notes the layers of a content that was pulled before layers were kept. */
  async addLayers (digest: string, layers: Layers): Promise<void> {
    await inTransaction(this.#knex, async (trx) => {
      if (await this.#contents(trx).where({ id: this.#key(digest) }).update({ layer_count: layers.count }) > 0) await putLayers(trx, this.#key(digest), layers)
    })
  }

  async layers (digest: string): Promise<KnownLayer[]> {
    return await knownLayers(this.#knex, this.#key(digest), this.#hostId)
  }

  /** @param most how many of them are named */
  async holders (digest: string, most: number): Promise<{ readonly total: number, readonly some: readonly string[] }> {
    const rows = (): Knex.QueryBuilder => this.#knex(HOLDERS).where({ content_id: this.#key(digest) })
    const [[counted], some]: [ReadonlyArray<{ readonly total: number | string }>, ReadonlyArray<{ readonly holder: string }>] = await Promise.all([rows().count({ total: '*' }), rows().select('holder').orderBy('holder').limit(most)])
    return { total: Number(counted?.total ?? 0), some: some.map(({ holder }) => holder) }
  }

  /** Reports the progress of a content's pull, for each of its names. */
  async progress (digest: string, received: number, total: number): Promise<void> {
    for (const state of await this.#states(this.#knex, await this.#pointing(digest))) {
      this.#changes.progress({ ...state, details: { ...state.details, received_bytes: Math.min(received, total), total_bytes: total } })
    }
  }

  async #note (trx: Knex, note: Note, action: ChangeAction, tags: TagQuery): Promise<void> {
    for (const state of await this.#states(trx, await tags)) note({ action, ...state })
  }

  /** As the API shows them. */
  async #states (db: Knex, tags: readonly StoredTagRow[]): Promise<ResourceState[]> {
    const keys = [...new Set(tags.flatMap(digestsOf))].map((digest) => this.#key(digest))
    const contents = (await this.#contents(db).whereIn('id', keys)).map(contentOf)
    return tags.map(tagOf).map((tag) => {
      const { name, status, digest, error } = present(tag, (wanted) => contents.find((content) => content.digest === wanted), () => undefined)
      return { id: name, name, status, tags: tag.tags, details: { digest, error: error ?? null } }
    })
  }

  #named (db: Knex, name: string): TagQuery {
    return this.#tags(db).where({ id: this.#key(name) })
  }

  // Hashed, since MySQL ignores case when it compares names, and indexes only their beginning.
  #key (value: string): string {
    return createHash('sha256').update(`${this.#hostId}\n${value}`).digest('hex')
  }

  #tags (db: Knex = this.#knex): TagQuery {
    return db<StoredTagRow>(TAGS)
  }

  #contents (db: Knex = this.#knex): ContentQuery {
    return db<StoredContentRow>(CONTENTS)
  }

  /** The row of a content, to begin a transaction with: of those that hold or name it and those that give it up, each sees what the one before has done. */
  async #locked (trx: Knex.Transaction, digest: string): Promise<StoredContentRow | undefined> {
    return await this.#contents(trx).where({ id: this.#key(digest) }).forUpdate().first()
  }

  #pointing (digest: string, db: Knex = this.#knex): TagQuery {
    return this.#tags(db).where({ host_id: this.#hostId }).andWhere((query) => { query.where({ digest }).orWhere({ next_digest: digest }) })
  }

  async #findTag (name: string, db: Knex = this.#knex): Promise<StoredTagRow | undefined> {
    return await this.#tags(db).where({ id: this.#key(name) }).first()
  }

  #newTag (tag: NewTag): StoredTagRow {
    return {
      id: this.#key(tag.name),
      host_id: this.#hostId,
      name: tag.name,
      repository: tag.repository,
      digest: null,
      next_digest: null,
      state: 'resolving',
      error: null,
      tags: '{}',
      created_at: this.#now()
    }
  }
}
