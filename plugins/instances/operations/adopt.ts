// At the start of the server: takes over the VMs that run, settles those that have ended, and removes what is half-made.
import type { Vm, VmHandle } from '../../../core/library/hypervisor.ts'
import { endProcess } from '../../../core/process/end.ts'
import { settleReplacement } from '../copies/replacement.ts'
import { identityOf, liveInstance, pathsIn, type Context } from '../context.ts'
import { emptyTrash, makeFile, strangeFolders } from '../files.ts'
import type { LiveInstance } from '../live-instance.ts'
import { finishRotation } from '../logs/rotate.ts'
import { processesByFolder } from '../orphans.ts'
import { retainParts, settleParts } from '../parts/all.ts'
import { instancesFolder } from '../paths.ts'
import type { InstanceRecord } from '../record.ts'
import { dropPending, settleVolumes } from '../volumes/settle.ts'
import { adoptStandby, finishStandby, goOn, takenImage, withTaker } from '../memory-image/adopt.ts'
import { attach } from './attach.ts'
import { removeRemains } from './delete.ts'
import { converse } from './launch.ts'

/** Returns when every instance of this host has a right state, as far as it can be known without its guest. */
export async function adoptAll (context: Context): Promise<void> {
  const folder = instancesFolder(context.dataDir)
  await emptyTrash(folder)
  const records = await Promise.all((await context.repository.onHost(context.hostId)).map(async (record) => await withTaker(context, record)))
  await endOrphans(records, folder)
  await retainParts(context, records)
  const results = await Promise.allSettled(records.map(async (record) => {
    if (record.status === 'active') await adopt(context, record)
    else await finishRemoval(context, record)
  }))
  for (const [index, result] of results.entries()) {
    if (result.status === 'rejected') context.log.error({ err: result.reason, instance: records[index]?.id }, 'an instance could not be taken over')
  }
  await settleParts(context)
  // Never removed: with a wrong database.url, all folders look strange.
  const strange = await strangeFolders(folder, new Set(records.map(({ id }) => id)))
  if (strange.length > 0) context.log.warn({ folder, strange }, 'folders without an instance in the database; they are left alone')
}

/** Ends the VMMs of instances whose row holds no handle: nobody will ever own them. */
async function endOrphans (records: readonly InstanceRecord[], folder: string): Promise<void> {
  const processes = await processesByFolder(folder)
  const orphans = records.filter(({ handle }) => handle === null).flatMap(({ id }) => processes.get(id) ?? [])
  await Promise.all(orphans.map(endProcess))
}

async function finishRemoval (context: Context, record: InstanceRecord): Promise<void> {
  if (record.handle !== null) {
    const vm = await vmOf(context, record.handle)
    await vm?.kill()
    vm?.release()
    await endProcess(record.handle)
  }
  await removeRemains(context, record)
  context.log.info({ instance: record.id, name: record.name, status: record.status }, 'removed an instance that was half-made')
}

async function adopt (context: Context, record: InstanceRecord): Promise<void> {
  const instance = liveInstance(context, record)
  // Before anything that may fail: an instance that cannot be taken over is Unknown, not away.
  context.instances.add(instance)
  try {
    await settleReplacement(context, instance)
    // One whose end was stored, and what was to follow was not.
    if (record.handle === null) await dropPending(context, instance)
    if (record.handle === null) await adoptStandby(context, instance)
    else if (!await finishStandby(context, instance, record.handle)) await takeOver(context, instance, record.handle)
  } catch (error) {
    instance.setProblem(`its VM${record.standbyAt === null ? '' : ' or memory image'} could not be taken over: ${error instanceof Error ? error.message : String(error)}`)
    throw error
  }
}

async function takeOver (context: Context, instance: LiveInstance, handle: VmHandle): Promise<void> {
  const { record } = instance
  const vm = await vmOf(context, handle)
  if (vm === undefined) return instance.setProblem(`the plugin hypervisor-${handle.driver}, which runs its VM, is not enabled`)
  const image = await context.images.byDigest(record.imageDigest)
  if (image === undefined) return instance.setProblem('the content of its image is no longer on this host')
  const taken = await takenImage(context, instance)
  const origin = record.runningAt !== null ? 'running' : taken === undefined ? 'launched' : 'restored'
  const machine = converse(context, record, image, vm, origin, taken?.newMachine)
  attach(context, instance, machine)
  await instance.settling
  if (vm.state.status === 'gone') return
  await goOn(context, instance, vm, machine)
  settleVolumes(context, instance)
  await finishRotation(vm, pathsIn(context, record.id), async (path) => { await makeFile(path, identityOf(context, record)) })
}

async function vmOf (context: Context, handle: VmHandle): Promise<Vm | undefined> {
  return await context.hypervisors.get(handle.driver)?.attach(handle)
}
