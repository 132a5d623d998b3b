// A plugin whose rows change, for tests of who hears of it.
import type { Knex } from 'knex'
import type { Test } from 'tap'
import type { ApiKeys } from '../../../core/contracts/services.ts'
import { Type } from 'typebox'
import { absentJournal } from '../../../core/db/absent-journal.ts'
import { createChanges, type Changes, type ResourceState } from '../../../core/db/changes.ts'
import { definePlugin, type Plugin } from '../../../core/plugins/manifest.ts'
import { plugin as events } from '../../../plugins/events/index.ts'
import { bareApp, type BareApp } from '../../core/bare-app.ts'

interface Row { id: string, status: string, tags: string }

export class Things {
  readonly changes: Changes
  readonly #database: Knex

  constructor (database: Knex, journal: Parameters<typeof createChanges>[1]) {
    this.#database = database
    this.changes = createChanges(database, journal, { resource: 'thing', scope: 'volume:read', list: async () => await this.all() })
  }

  async all (): Promise<ResourceState[]> {
    return (await this.#database<Row>('things').orderBy('id')).map(stateOf)
  }

  async make (id: string, tags: Record<string, string> = {}): Promise<void> {
    const row = { id, status: '0', tags: JSON.stringify(tags) }
    await this.changes.commit(async (trx, note) => {
      await trx<Row>('things').insert(row)
      note({ action: 'created', ...stateOf(row) })
    })
  }

  async set (id: string, status: string): Promise<void> {
    await this.changes.commit(async (trx, note) => {
      await trx<Row>('things').where({ id }).update({ status })
      const row = await trx<Row>('things').where({ id }).first()
      if (row !== undefined) note({ action: 'updated', ...stateOf(row) })
    })
  }

  async remove (id: string): Promise<void> {
    await this.changes.commit(async (trx, note) => {
      const row = await trx<Row>('things').where({ id }).forUpdate().first()
      if (row === undefined) return
      await trx<Row>('things').where({ id }).delete()
      note({ action: 'deleted', ...stateOf(row) })
    })
  }
}

export async function makeTable (database: Knex): Promise<void> {
  if (await database.schema.hasTable('things')) return
  await database.schema.createTable('things', (table) => {
    table.string('id', 64).primary()
    table.string('status', 32).notNullable()
    table.text('tags').notNullable()
  })
}

function stateOf ({ id, status, tags }: Row): ResourceState {
  return { id, name: `name-of-${id}`, status, tags: JSON.parse(tags) }
}

export interface ThingsApp extends BareApp { readonly things: Things, readonly database: Knex, readonly apiKeys: ApiKeys }

export interface ThingsOptions {
  /** without the plugin events */
  readonly withoutEvents?: boolean
  /** of the plugin events */
  readonly config?: Record<string, unknown>
  readonly server?: Record<string, unknown>
  readonly database?: string
  readonly more?: readonly Plugin[]
  /** of those, by id */
  readonly moreConfig?: Record<string, unknown>
  readonly options?: Parameters<typeof bareApp>[2]
}

/** A server with the plugin events and things. */
export async function startWithThings (t: Test, { withoutEvents = false, config = {}, server = {}, database: url, more = [], moreConfig = {}, options = {} }: ThingsOptions = {}): Promise<ThingsApp> {
  let things: Things | undefined
  let database: Knex | undefined
  let apiKeys: ApiKeys | undefined
  const plugin: Plugin = definePlugin({
    manifest: { id: 'things', provides: [], requires: ['database', 'apiKeys', 'server'], optional: ['journal'], config: Type.Object({}, { additionalProperties: false }) },
    create: (deps) => ({
      async start () {
        apiKeys = deps.apiKeys
        database = deps.database
        await makeTable(deps.database)
        things = new Things(deps.database, deps.journal ?? absentJournal(deps.server.hostId))
      }
    })
  })
  const bare = await bareApp(t, {
    ...Object.keys(server).length === 0 ? {} : { server },
    ...url === undefined ? {} : { database: { url } },
    plugins: { ...withoutEvents ? {} : { events: { config } }, ...moreConfig }
  }, { plugins: [...withoutEvents ? [] : [events], plugin, ...more], ...options })
  await bare.app.start()
  if (things === undefined || database === undefined || apiKeys === undefined) throw new Error('the plugin did not start')
  return { ...bare, things, database, apiKeys }
}
