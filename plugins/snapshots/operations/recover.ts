// Settles what an earlier server has left: afterwards every snapshot is whole or gone.
import type { Context } from '../context.ts'
import type { SnapshotRecord } from '../record.ts'
import { finishRemoval } from './delete.ts'

/** To be called before anybody else works with snapshots. A failure for one of them is logged, and the next server tries again. */
export async function recover (context: Context): Promise<void> {
  const { files, repository, log } = context
  await files.prepare()
  const records = await repository.all()
  for (const record of records) {
    try {
      await recoverOne(context, record)
    } catch (error) {
      log.error({ err: error, snapshot: record.id }, 'a snapshot could not be put in order')
    }
  }
  const strangers = await files.strangers(new Set(records.map(({ id }) => id)))
  if (strangers.length > 0) log.warn({ folder: files.folder, names: strangers }, 'these are no snapshots that this server knows; they are left alone')
}

async function recoverOne (context: Context, record: SnapshotRecord): Promise<void> {
  const { files, compressor, log } = context
  if (record.status !== 'ready') return await finishRemoval(context, record)
  const missing = await files.tidy(record)
  if (missing.length > 0) return log.error({ snapshot: record.id, missing }, 'a snapshot has lost files; it cannot be used any more')
  if (record.compressionState === 'compressing') compressor.begin(record.id)
}
