// Resumes what an earlier server left: waiting builds go on waiting, and interrupted ones are ended.
import type { ResumedWork } from '../../../core/jobs/resume-shares.ts'
import { openLog, type Context } from '../context.ts'
import { LiveBuild } from '../live-build.ts'
import type { BuildEnd, BuildRecord } from '../record.ts'
import { cleanLater, cleanRemains } from './clean.ts'
import { enqueue } from './enqueue.ts'
import { finish } from './finish.ts'
import { removeOutdated } from './retention.ts'
import { withLastLines } from './run.ts'

/** how long a pushed image may take until it is ready for instances */
const IMAGE_WAIT_MS = 600_000

/** Must be called before the queue opens. Interrupted builds are cleaned up in the background, in the place in the queue that they had. Returns what goes on. */
export async function recover (context: Context): Promise<ResumedWork[]> {
  const { files, repository, log } = context
  const resumed: ResumedWork[] = []
  await files.prepare()
  for (const record of await repository.unfinished()) {
    try {
      await takeUp(context, record)
      resumed.push({ id: record.id, keyId: await keyIdOf(context, record.id) })
    } catch (error) {
      log.error({ err: error, build: record.id }, 'a build of an earlier server could not be taken up')
      await repository.finish(record.id, { status: 'failed', error: 'its files were lost' }, context.clock.now())
    }
  }
  await cleanRemains(context)
  await files.clearUploads()
  await removeOutdated(context)
  const all = await repository.all()
  // A server that was killed may have left a source that is no longer needed.
  for (const { id } of all.filter(({ id }) => !context.live.has(id))) await files.dropSource(id)
  const strangers = await files.strangers(new Set(all.map(({ id }) => id)))
  if (strangers.length > 0) log.warn({ folder: files.folder, names: strangers }, 'these are no builds that this server knows; they are left alone')
  return resumed
}

async function keyIdOf ({ files }: Context, id: string): Promise<string | undefined> {
  try {
    return (await files.readOrder(id)).keyId
  } catch {
    // A build without its order fails as its turn comes, and one that ends just now needs none.
    return undefined
  }
}

async function takeUp (context: Context, record: BuildRecord): Promise<void> {
  const { id, status, builderId } = record
  await (status === 'queued' ? context.files.admit(id) : context.files.ensure(id))
  const build = new LiveBuild(id, builderId, await openLog(context, id, context.files.of(id).log))
  if (status === 'queued') return enqueue(context, build)
  context.live.set(id, build)
  context.queue.adopt({ id, builderId, run: async () => { await finish(context, build, await endOf(context, build, record)) } })
}

async function endOf (context: Context, build: LiveBuild, record: BuildRecord): Promise<BuildEnd> {
  const { runner, log } = context
  const { id, status, imageDigest } = record
  try {
    await runner.clean(id)
    if (imageDigest !== null && await hasImage(context, build, record)) return { status: 'ready' }
    return { status: 'failed', error: await withLastLines(context, id, `the server was stopped while the build was ${status}`) }
  } catch (error) {
    log.error({ err: error, build: id }, 'what a build of an earlier server has left could not be removed; it is tried again')
    cleanLater(context, id)
    return { status: 'failed', error: `the server was stopped while the build was ${status}, and could not remove what was left of it` }
  }
}

/** Whether the pushed image is ready for instances. Another build may have taken its name since. */
async function hasImage ({ images, log }: Context, { controller, id }: LiveBuild, { imageRef, imageDigest }: BuildRecord): Promise<boolean> {
  if (imageRef === null || imageDigest === null) return false
  try {
    return (await images.require(imageRef, IMAGE_WAIT_MS, controller.signal)).digest === imageDigest
  } catch (error) {
    log.info({ err: error, build: id }, 'the image of an interrupted build is not there')
    return false
  }
}
