// Turns an upload into a build: stores its row, which makes it a build, then moves its folder, then adds it to the queue.
import { NotFound } from '../../../core/errors/common.ts'
import { isDiskFull } from '../../../core/fs/disk-full.ts'
import { lookupStored } from '../../../core/http/lookup.ts'
import { nowOrLater } from '../../../core/jobs/now-or-later.ts'
import { laterOnce } from '../../../core/jobs/until-done.ts'
import { openLog, type Context } from '../context.ts'
import { BuilderUnusable, DiskFull } from '../errors.ts'
import type { BuildLog } from '../events/build-log.ts'
import { LiveBuild } from '../live-build.ts'
import type { BuildOrder, BuildRecord } from '../record.ts'
import type { CreateBuild } from '../schemas.ts'
import { orderOf, type Rights } from '../upload/order.ts'
import { refuseMore, type Upload } from '../upload/receive.ts'
import { enqueue } from './enqueue.ts'

/** Resolves when the build is in the queue. When this rejects, the caller must drop the upload. */
export async function create (context: Context, upload: Upload, fields: CreateBuild, rights: Rights): Promise<BuildRecord> {
  const { files, secrets, settings } = context
  const order = await withWholeId(context, orderOf(fields, settings, rights))
  await secrets.check(order.secretIds)
  try {
    await files.writeOrder(files.upload(upload.id), order)
    return await withBuilder(context, order, async () => {
      // One after the other, so that the queue has the order in which builds were made.
      return await context.admission(async () => {
        refuseMore(context)
        return await admit(context, recordOf(context, upload.id, order, fields))
      })
    })
  } catch (error) {
    throw isDiskFull(error) ? DiskFull.from(error) : error
  }
}

/** The order with the full id of its builder. @throws not_found, ambiguous */
async function withWholeId ({ builders }: Context, order: BuildOrder): Promise<BuildOrder> {
  return order.builderId === undefined ? order : { ...order, builderId: (await lookupStored(builders, order.builderId, { what: 'builder' })).id }
}

/** The builder cannot be changed until the build is in the queue. */
async function withBuilder<T> ({ builders, locks }: Context, { builderId }: BuildOrder, work: () => Promise<T>): Promise<T> {
  if (builderId === undefined) return await work()
  return await locks.hold(builderId, async () => {
    const builder = await builders.find(builderId)
    if (builder === undefined) throw NotFound('builder', builderId)
    if (builder.status === 'deleting') throw BuilderUnusable(builderId, 'is being deleted')
    if (builder.status === 'error') throw BuilderUnusable(builderId, 'has lost its disk; prune it')
    return await work()
  })
}

async function admit (context: Context, record: BuildRecord): Promise<BuildRecord> {
  const { files, repository } = context
  const log = await openLog(context, record.id, files.upload(record.id).log)
  try {
    log.status('queued')
    await log.flush()
    // When it fails the row may be there all the same: it may have been stored, and the answer lost. Its upload is dropped, so nobody could run it.
    await nowOrLater(async () => { await repository.insert(record) }, () => { removeLater(context, record.id) })
  } catch (error) {
    await log.close()
    throw error
  }
  await settle(context, record, log)
  return record
}

async function settle (context: Context, record: BuildRecord, log: BuildLog): Promise<void> {
  const { id, builderId } = record
  try {
    await context.files.admit(id)
  } catch (error) {
    await log.close()
    await nowOrLater(async () => { await remove(context, id) }, () => { removeLater(context, id) })
    throw error
  }
  enqueue(context, new LiveBuild(id, builderId, log))
}

/** The row last, so that as long as anything of it is there, the row shows what to do. */
async function remove ({ files, repository }: Context, id: string): Promise<void> {
  await files.remove(id)
  await repository.remove(id)
}

function removeLater (context: Context, id: string): void {
  laterOnce(context.later, `build ${id}`, async () => { await remove(context, id) }, context.closing.signal)
}

function recordOf ({ clock }: Context, id: string, { builderId, baseImageDigest }: BuildOrder, { tags = {}, source }: CreateBuild): BuildRecord {
  return {
    id,
    status: 'queued',
    builderId: builderId ?? null,
    instanceId: null,
    imageRef: null,
    imageDigest: null,
    error: null,
    provenance: { sourceHash: source, ...baseImageDigest === undefined ? {} : { baseImageDigest } },
    tags,
    createdAt: clock.unique(),
    startedAt: null,
    completedAt: null
  }
}
