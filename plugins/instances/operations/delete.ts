// Deletes an instance completely: its VM, its files, its hold on the image, its parts, its row. In this order, so that a crash in between
// leaves a row that says `deleting`, from which the next start goes on.
import { nowOrLater } from '../../../core/jobs/now-or-later.ts'
import { endProcess } from '../../../core/process/end.ts'
import { pathsIn, type Context } from '../context.ts'
import { removeFiles } from '../folder/files.ts'
import { instancesFolder } from '../folder/paths.ts'
import { processesByFolder } from '../host/orphans.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { releaseParts } from '../parts/all.ts'
import { doLater } from '../parts/later.ts'
import { imageHolder, type InstanceRecord } from '../model/record.ts'
import { leaving } from './leaving.ts'
import { endVm } from './stop.ts'

/** Works in every state. What fails is told, and tried again for as long as it takes: whoever asked may never come back. The instance's lock is held. */
export async function remove (context: Context, instance: LiveInstance, graceMs: number): Promise<void> {
  await nowOrLater(async () => { await removeNow(context, instance, graceMs) }, () => { if (instance.record.status === 'deleting') removeLater(context, instance) })
}

function removeLater (context: Context, instance: LiveInstance): void {
  doLater(context, 'delete', instance.id, async () => {
    if (instance.deleted) return
    await removeNow(context, instance, 0).catch((error: unknown) => {
      context.log.warn({ err: error, instance: instance.id }, 'an instance that is being deleted is still there; it is tried again')
      throw error
    })
  })
}

async function removeNow (context: Context, instance: LiveInstance, graceMs: number): Promise<void> {
  await leaving(instance, async () => { await removeWhole(context, instance, graceMs) })
}

async function removeWhole (context: Context, instance: LiveInstance, graceMs: number): Promise<void> {
  await Promise.all([context.compressions.cancel(instance.id), context.kept.end(instance.id, 'changed')])
  if (instance.record.status !== 'deleting') await instance.save({ status: 'deleting' })
  await endVm(instance, graceMs)
  // A VM that could not be taken over, for example because its driver is turned off, is ended too.
  if (instance.record.handle !== null) await endProcess(instance.record.handle)
  // One that no row knows kept the instance from being taken over.
  else if (instance.state === 'Unknown') await endOrphansOf(context, instance.id)
  await removeRemains(context, instance.record)
  context.monitors.get(instance.id)?.stop.abort()
  context.monitors.delete(instance.id)
  context.leases.forget(instance.id)
  context.instances.remove(instance)
  instance.markDeleted()
  context.events.emit('instance.deleted', { id: instance.id })
}

/** Ends what runs in an instance's folder, whether a row names it or not. */
export async function endOrphansOf ({ dataDir }: Context, id: string): Promise<void> {
  const processes = await processesByFolder(instancesFolder(dataDir))
  await Promise.all((processes.get(id) ?? []).map(endProcess))
}

/** Removes what is left of an instance that has no VM under this server. */
export async function removeRemains (context: Context, record: InstanceRecord): Promise<void> {
  const paths = pathsIn(context, record.id)
  await removeFiles(paths)
  // A VM that was made ahead has no image.
  if (record.imageDigest !== '') await context.images.release(record.imageDigest, imageHolder(record.id))
  await releaseParts(context, record)
  await context.repository.remove(record.id)
}
