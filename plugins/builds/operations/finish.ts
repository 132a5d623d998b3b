// Ends a build: first its row, which decides, then the last line of its log, then the files that it no longer needs.
import { untilDone } from '../../../core/jobs/until-done.ts'
import type { Context } from '../context.ts'
import type { LiveBuild } from '../live-build.ts'
import { isFinal, tookMs, type BuildEnd } from '../record.ts'
import { removeOutdated } from './retention.ts'

/** An error is a sentence and some lines; a longer text helps nobody. */
const MAX_ERROR_LENGTH = 16 * 1024

/** Never rejects. When the row cannot be written until the server stops, its next start ends the build. */
export async function finish (context: Context, build: LiveBuild, end: BuildEnd): Promise<void> {
  const { live, log, files, metrics } = context
  const attempt = async (what: string, work: () => Promise<void>): Promise<void> => {
    try {
      await work()
    } catch (error) {
      log.error({ err: error, build: build.id }, what)
    }
  }
  await attempt('the end of a build could not be stored', async () => {
    await store(context, build, end)
    build.log.status(end.status)
    metrics.ended(end.status)
  })
  await attempt('the source of a build could not be removed', async () => { await files.dropSource(build.id) })
  // Readers learn that nothing more will come only when everything is written.
  await build.log.flush()
  live.delete(build.id)
  build.log.ring()
  await attempt('the log of a build could not be closed', async () => { await build.log.close() })
  build.end()
  await removeOutdated(context)
}

async function store ({ repository, clock, metrics, log, closing }: Context, { id }: LiveBuild, { status, error }: BuildEnd): Promise<void> {
  const now = clock.now()
  const attempt = async (): Promise<void> => { await repository.finish(id, { status, ...error === undefined ? {} : { error: cut(error) } }, now) }
  try {
    await attempt()
  } catch (failure) {
    log.warn({ err: failure, build: id }, 'the end of a build could not be stored yet; it is tried again')
    const isStored = await untilDone(async () => {
      const record = await repository.find(id)
      // The answer to an attempt may have been lost.
      if (record !== undefined && !isFinal(record.status)) await attempt()
    }, closing.signal)
    if (!isStored) throw failure
  }
  const record = await repository.find(id)
  if (record?.startedAt != null) metrics.took(status, tookMs(record.startedAt, now) / 1000)
}

function cut (error: string): string {
  return error.length > MAX_ERROR_LENGTH ? `${error.slice(0, MAX_ERROR_LENGTH)}…` : error
}
