// The builds of this host: the functions of the routes.
import type { ResumedWork } from '../../core/jobs/resume-shares.ts'
import { wantedPage, type Found } from '../../core/http/list.ts'
import { lookupStored } from '../../core/http/lookup.ts'
import { Signal } from '../../core/jobs/signal.ts'
import { createBuilders, type Builders } from './builders/builders.ts'
import type { Context } from './context.ts'
import { buildEvents } from './events/stream.ts'
import { cancel } from './operations/cancel.ts'
import { create } from './operations/create.ts'
import { recover } from './operations/recover.ts'
import { removeOutdated } from './operations/retention.ts'
import { Ended } from './operations/run.ts'
import { isFinal, type BuildRecord } from './record.ts'
import type { BuildView, CreateBuild, ListBuildsQuery } from './schemas.ts'
import type { FormPart } from './upload/form.ts'
import type { Rights } from './upload/order.ts'
import { receive, type Upload } from './upload/receive.ts'
import { buildView } from './view.ts'

const RETENTION_INTERVAL_MS = 3_600_000

export interface EventsRequest {
  readonly follow: boolean
  readonly lastEventId: string | undefined
  readonly signal: AbortSignal
}

export interface Builds {
  readonly builders: Builders
  /** Returns the builds of an earlier server that go on. */
  open (): Promise<readonly ResumedWork[]>
  close (): Promise<void>
  /** Receives a form. The result must be passed to `create` or `drop`. @throws too_many_builds, before anything of the form is read */
  receive (parts: AsyncIterable<FormPart>): Promise<Upload>
  /** Makes an upload a build. */
  create (upload: Upload, fields: CreateBuild, rights: Rights): Promise<BuildView>
  /** Removes an upload, unless it is a build. */
  drop (upload: Upload): Promise<void>
  /** @throws invalid_request */
  list (query: ListBuildsQuery): Promise<Found<BuildRecord>>
  /** By id, or the beginning of one. @throws not_found, ambiguous */
  get (ref: string): Promise<BuildView>
  view (record: BuildRecord): BuildView
  /** whether a build, by its full id, has ended */
  isOver (id: string): boolean
  cancel (ref: string): Promise<void>
  /** The texts of its events. @throws not_found, before any of them */
  events (ref: string, request: EventsRequest): Promise<AsyncIterable<string>>
}

export function createBuilds (context: Context): Builds {
  const { queue, live, repository, runner, log, closing } = context
  const builders = createBuilders(context)
  let retention: NodeJS.Timeout | undefined
  const find = async (ref: string): Promise<BuildRecord> => await lookupStored(repository, ref, { what: 'build' })
  const view = (record: BuildRecord): BuildView => buildView(record, queue.position(record.id))
  return {
    builders,
    view,
    receive: async (parts) => await receive(context, parts),
    create: async (upload, fields, rights) => view(await create(context, upload, fields, rights)),
    drop: async ({ id }) => { await context.files.dropUpload(id) },
    isOver: (id) => !live.has(id),
    list: async ({ status, tags, ...page }) => await repository.page({ ...status === undefined ? {} : { status }, ...tags === undefined ? {} : { tags } }, wantedPage(page)),
    get: async (ref) => view(await find(ref)),
    cancel: async (ref) => { await cancel(context, (await find(ref)).id) },

    async open () {
      const resumed = await recover(context)
      await builders.recover()
      retention = setInterval(() => { void removeOutdated(context) }, RETENTION_INTERVAL_MS).unref()
      queue.open()
      if (context.settings.prepare) runner.prepare(closing.signal).catch((error: unknown) => { log.warn({ err: error }, 'the image of builds could not be prepared; the first build tries again') })
      return resumed
    },

    async close () {
      clearInterval(retention)
      closing.abort(new Error('the server is stopping'))
      const over = queue.close()
      for (const build of live.values()) {
        if (queue.position(build.id) === undefined) build.controller.abort(new Ended('failed', 'the server was stopped during the build'))
      }
      await over
      await builders.close()
      await runner.close?.()
      for (const build of live.values()) await build.log.close()
    },

    async events (ref, { follow, lastEventId, signal }) {
      const { id } = await find(ref)
      await context.admission(async () => {})
      return eventsOf(context, id, follow, lastEventId, signal)
    }
  }
}

async function * eventsOf ({ live, files, settings, repository }: Context, id: string, follow: boolean, lastEventId: string | undefined, signal: AbortSignal): AsyncGenerator<string, void, void> {
  const wake = new Signal()
  const unwatch = live.get(id)?.log.watch(wake)
  try {
    yield * buildEvents({
      path: files.of(id).log,
      goesOn: () => follow && live.has(id),
      wake,
      signal,
      heartbeatMs: settings.heartbeatMs,
      lastEventId,
      async end () {
        const record = await repository.find(id)
        return record !== undefined && isFinal(record.status) && record.completedAt !== null ? { status: record.status, at: record.completedAt } : undefined
      }
    })
  } finally {
    unwatch?.()
  }
}
