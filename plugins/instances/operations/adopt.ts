// At the start of the server: takes over the VMs that run, settles those that have ended, and removes what is half-made.
import type { Vm, VmHandle } from '../../../core/library/hypervisor.ts'
import { removeTree } from '../../../core/fs/durable.ts'
import { nowOrLater } from '../../../core/jobs/now-or-later.ts'
import { sideBySide } from '../../../core/jobs/side-by-side.ts'
import { laterOnce } from '../../../core/jobs/until-done.ts'
import { endProcess } from '../../../core/process/end.ts'
import { settleReplacement } from '../copies/replacement.ts'
import { identityOf, liveInstance, pathsIn, type Context } from '../context.ts'
import { emptyTrash, makeFile, strangeFolders } from '../folder/files.ts'
import { readRemains, type Remains } from '../memory-image/files.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { finishRotation } from '../logs/rotate.ts'
import { processesByFolder } from '../host/orphans.ts'
import { disconnectParts, retainParts, settleParts } from '../parts/all.ts'
import { instancesFolder } from '../folder/paths.ts'
import { imageHolder, type InstanceRecord } from '../model/record.ts'
import { dropPending, settleVolumes } from '../volumes/settle.ts'
import { settleRestored } from '../memory-image/restored.ts'
import { adoptStandby, finishStandby, goOn, takenImage, withTaker } from '../memory-image/adopt.ts'
import { hasLivedOn, PROVEN_AFTER_MS } from '../memory-image/keep.ts'
import { doLater } from '../parts/later.ts'
import { attach } from './attach.ts'
import { endOrphansOf, removeRemains } from './delete.ts'
import { endFormerVm } from './end-former-vm.ts'
import { converse } from './launch.ts'

/** What a few processors and a disk can do at once; with more, the others only wait. */
const AT_ONCE = 64

/** Returns when every instance of this host has the right state, as far as that can be known without its guest. */
export async function adoptAll (context: Context): Promise<void> {
  const folder = instancesFolder(context.dataDir)
  await clearAway(context, folder)
  const rows = await context.repository.onHost(context.hostId)
  const remains = await remainsOf(context, rows)
  const records: InstanceRecord[] = []
  /** what keeps an instance from being taken over; it must not keep the server from its start */
  const faults = new Map<string, unknown>()
  for (const row of rows) {
    const mayHaveTaker = remains.get(row.id)?.image.has('taken') !== false
    records.push(!mayHaveTaker ? row : await withTaker(context, row).catch((error: unknown) => {
      faults.set(row.id, error)
      return row
    }))
  }
  await endOrphans(records.filter(({ id }) => !faults.has(id)), folder, faults)
  await retainParts(context, records)
  // An instance whose create or fork was taken back may have lost its row before its image was released.
  await context.images.retain('instance', new Set(records.map(({ id }) => imageHolder(id)))).catch((error: unknown) => { context.log.error({ err: error }, 'images that no instance holds any more could not be released; the next start of the server tries it again') })
  await settleRestored(context, records)
  const results = await sideBySide(records, AT_ONCE, async (record) => {
    if (record.status === 'active') await adopt(context, record, { remains: remains.get(record.id), fault: faults.get(record.id) })
    else await nowOrLater(async () => { await finishRemoval(context, record, faults.get(record.id)) }, () => { finishRemovalLater(context, record) })
  })
  for (const [index, result] of results.entries()) {
    if (result.status === 'rejected') context.log.error({ err: result.reason, instance: records[index]?.id }, 'an instance could not be taken over')
  }
  await settleParts(context)
  // They are never removed: with a wrong database.url, all folders look strange.
  const strange = await strangeFolders(folder, new Set(records.map(({ id }) => id)))
  if (strange.length > 0) context.log.warn({ folder, strange }, 'folders without an instance in the database; they are left alone')
}

async function clearAway ({ log, later, closing }: Context, folder: string): Promise<void> {
  for (const [path, error] of await emptyTrash(folder)) {
    log.warn({ err: error, folder: path }, 'what is left of a removed instance could not be removed; it is tried again')
    laterOnce(later, path, async () => { await removeTree(path) }, closing.signal)
  }
}

/** What is in the folders of instances without a VM. Most instances are at rest, and one look tells that nothing needs settling. Where the look fails, everything is checked. */
async function remainsOf (context: Context, rows: readonly InstanceRecord[]): Promise<ReadonlyMap<string, Remains>> {
  const resting = rows.filter(({ status, handle }) => status === 'active' && handle === null)
  const found = await sideBySide(resting, AT_ONCE, async ({ id }): Promise<[string, Remains]> => [id, await readRemains(pathsIn(context, id))])
  return new Map(found.flatMap((result) => result.status === 'fulfilled' ? [result.value] : []))
}

/** Ends the VMMs of instances whose row holds no handle: nothing else would ever end them. @param faults gets those that cannot be ended */
async function endOrphans (records: readonly InstanceRecord[], folder: string, faults: Map<string, unknown>): Promise<void> {
  const processes = await processesByFolder(folder)
  const orphans = records.filter(({ handle }) => handle === null).flatMap(({ id }) => (processes.get(id) ?? []).map((identity) => ({ id, identity })))
  await Promise.all(orphans.map(async ({ id, identity }) => { await endProcess(identity).catch((error: unknown) => { faults.set(id, error) }) }))
}

async function finishRemoval (context: Context, record: InstanceRecord, fault: unknown): Promise<void> {
  // Its VMM still has its files.
  if (fault !== undefined) throw fault
  if (record.handle !== null) await endFormerVm(context, record.handle)
  await removeRemains(context, record)
  context.log.info({ instance: record.id, name: record.name, status: record.status }, 'removed an instance that was half-made')
}

/** Its row has a name and a user that nobody else can have meanwhile. */
function finishRemovalLater (context: Context, record: InstanceRecord): void {
  doLater(context, 'half-made', record.id, async () => {
    await endOrphansOf(context, record.id)
    await finishRemoval(context, record, undefined)
  })
}

interface Found {
  /** what is in its folder; absent: unknown */
  readonly remains: Remains | undefined
  /** why it cannot be told whether it has a VM */
  readonly fault: unknown
}

async function adopt (context: Context, record: InstanceRecord, { remains, fault }: Found): Promise<void> {
  const instance = liveInstance(context, record)
  // Before anything that may fail: an instance that cannot be taken over is Unknown, and still listed.
  context.instances.add(instance)
  try {
    // Whatever else is known of it: with a second VM its disk would be lost.
    if (fault !== undefined) throw fault
    if (remains?.replacement !== false) await settleReplacement(context, instance)
    const { handle } = instance.record
    // What was kept has taken the place of what this VM had; it has ended, and its end was not seen to.
    if (record.handle !== null && handle === null) await finishEnd(context, record, record.handle)
    // The end of the VM may have been stored without the steps that follow it.
    if (handle === null) await dropPending(context, instance)
    if (handle === null) await adoptStandby(context, instance, remains?.replacement === false ? remains : undefined)
    else if (!await finishStandby(context, instance, handle)) await takeOver(context, instance, handle)
  } catch (error) {
    instance.setProblem(`its VM${record.standbyAt === null ? '' : ' or memory image'} could not be taken over: ${error instanceof Error ? error.message : String(error)}`)
    throw error
  }
}

async function finishEnd (context: Context, record: InstanceRecord, handle: VmHandle): Promise<void> {
  await endFormerVm(context, handle)
  await disconnectParts(context, record)
}

async function takeOver (context: Context, instance: LiveInstance, handle: VmHandle): Promise<void> {
  const { record } = instance
  const vm = await vmOf(context, handle)
  if (vm === undefined) return instance.setProblem(`the plugin hypervisor-${handle.driver}, which runs its VM, is not enabled`)
  const image = await context.images.byDigest(record.imageDigest)
  if (image === undefined) return instance.setProblem('the content of its image is no longer on this host')
  const taken = await takenImage(context, instance)
  const origin = record.runningAt !== null ? 'running' : taken === undefined ? 'launched' : 'restored'
  // One that is paused may not have run yet.
  const hasRun = vm.state.status === 'running' && record.startedAt !== null && Date.now() - record.startedAt > PROVEN_AFTER_MS
  const proven = hasRun || await hasLivedOn(pathsIn(context, record.id), record.startedAt)
  const session = converse(context, record, { image, vm, origin, newMachine: taken?.newMachine })
  session.proven = proven
  attach(context, instance, session)
  await instance.settling
  if (vm.state.status === 'gone') return
  await goOn(context, instance, vm, session)
  settleVolumes(context, instance)
  await finishRotation(vm, pathsIn(context, record.id), async (path) => { await makeFile(path, identityOf(context, record)) }).catch((error: unknown) => {
    context.log.warn({ err: error, instance: record.id }, 'a log could not be rotated; it is tried again')
  })
}

async function vmOf (context: Context, handle: VmHandle): Promise<Vm | undefined> {
  return await context.hypervisors.get(handle.driver)?.attach(handle)
}
