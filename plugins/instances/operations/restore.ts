// Restores an instance from its memory image, which uses the image up: from the guest's first step on, memory and saved
// state are no longer of the same moment. Until then a failure, or a crash of the server, leaves the instance in standby.
import type { Vm, VmHandle } from '../../../core/library/hypervisor.ts'
import { BerthError } from '../../../core/errors/define.ts'
import { removeTree } from '../../../core/fs/durable.ts'
import { isThere } from '../../../core/fs/is-there.ts'
import { traced } from '../../../core/tracing/span.ts'
import type { ReadyImage } from '../../images/contract.ts'
import { compressLater } from '../compression/compress-image.ts'
import { tidyImage } from '../compression/compressed-image.ts'
import { expandImage } from '../compression/expand-image.ts'
import { identityOf, pathsIn, type Context } from '../context.ts'
import { namingFullDisk } from '../host/disk-full.ts'
import { ImageMissing, ImageUsedUp, RestoreFailed, RestoreRefused } from '../errors.ts'
import { prepareRun } from '../folder/files.ts'
import { dropUsedMemory, goOn, KeptVmLost, takeKept } from '../hot-standby/go-on.ts'
import type { RestoreWay } from '../hot-standby/metrics.ts'
import { dropKept, dropMemory, isUntouched, noteTaker, readUsable, returnImage, statePath, takeImage, type StoredImage } from '../memory-image/files.ts'
import { requireProvenImaging } from '../memory-image/imaging.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { logOperation } from '../folder/operations-log.ts'
import { admitParts, connectParts, disconnectParts } from '../parts/all.ts'
import type { InstanceRecord, RecordPatch } from '../model/record.ts'
import { startedState } from '../restart/policy.ts'
import { requireState } from '../model/state.ts'
import { requireUser } from '../users/require.ts'
import { attach } from './attach.ts'
import { awaitAwake } from './awake.ts'
import { allDone } from './insert.ts'
import { memoryFor } from '../memory-image/base.ts'
import { keepImage, noteProblem, proveImage, putBack } from '../memory-image/keep.ts'
import { converse, vmSpecOf } from './launch.ts'
import { storeLater } from './store-later.ts'

/** Returns once the guest is awake, or could not be woken yet. */
export async function restore (context: Context, instance: LiveInstance): Promise<void> {
  requireState('restore', instance.name, instance.derived)
  const { record } = instance
  const paths = pathsIn(context, record.id)
  const image = await context.images.byDigest(record.imageDigest)
  if (image === undefined) throw ImageMissing(record.image)
  // The restore goes first. The compression is planned again below if the image stays.
  await context.compressions.cancel(record.id)
  const stored = await readUsable(paths)
  if (stored === undefined) throw await usedUp(context, instance, 'its memory image is gone')
  const began = performance.now()
  const { vm, way } = await wakeVm(context, instance, image, stored).catch(async (error: unknown) => {
    await disconnectParts(context, record)
    if (instance.record.standbyAt !== null) compressLater(context, instance, stored)
    throw error
  })
  const session = converse(context, record, { image, vm, origin: 'restored', newMachine: stored.newMachine })
  storeLater(context, instance, await instance.replaceSession(session, (now) => restoredPatch(now, vm.handle)), 'a restore')
  attach(context, instance, session)
  const restored = performance.now()
  const isKept = await isThere(paths.kept.whole)
  await awaitAwake(context, instance, session, isKept ? proveImage(context, session, stored) : undefined)
  await instance.settling
  if (instance.record.standbyAt !== null) throw RestoreFailed(instance.name, instance.derived.restoreError ?? instance.derived.error ?? 'its VM has ended')
  context.keptMetrics.restored(way)
  if (way === 'hot') dropUsedMemory(context, instance, session)
  await logOperation(paths.operations, `restore: ${way === 'hot' ? 'kept ' : ''}VM runs after ${Math.round(restored - began)} ms, awake after another ${Math.round(performance.now() - restored)} ms`, context.log)
}

interface Awoken { readonly vm: Vm, readonly way: RestoreWay }

/** Lets the kept VM go on, or starts a VM on the image. When this rejects and the guest has not run, the image is whole again. */
async function wakeVm (context: Context, instance: LiveInstance, image: ReadyImage, stored: StoredImage): Promise<Awoken> {
  const kept = await takeKept(context, instance, stored)
  const hot = kept === undefined ? undefined : await goOn(context, instance, kept, stored).catch(async (error: unknown) => {
    throw error instanceof KeptVmLost ? await usedUp(context, instance, error.message, error) : error
  })
  return hot === undefined ? { vm: await startOn(context, instance, image, stored), way: 'cold' } : { vm: hot, way: 'hot' }
}

async function startOn (context: Context, instance: LiveInstance, image: ReadyImage, kept: StoredImage): Promise<Vm> {
  await requireUser(context, instance)
  const { record } = instance
  const paths = pathsIn(context, record.id)
  const imaging = await requireProvenImaging(context, 'restore', record)
  await admitParts(context, record)
  const connecting = connectParts(context, record).catch((error: unknown) => { throw refused(instance, error) })
  await allDone([prepareRun(paths, identityOf(context, record)), connecting])
  const spec = await vmSpecOf(context, record, image, await connecting)
  const stored = await expanded(context, instance, kept)
  await keepImage(context, record, stored)
  // Of a VM that was ended.
  if (stored.onBase === undefined) await removeTree(paths.base.folder)
  await takeImage(paths, stored)
  try {
    const options = { beforeRun: async (handle: VmHandle) => { await noteTaker(paths, handle) } }
    return await traced(`restore VM ${record.spec.hypervisor}`, {}, async () => await imaging.restore({ ...spec, memory: memoryFor(paths, stored, 'taken') }, stored.image, statePath(paths, 'taken'), options))
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    if (await isUntouched(paths, stored)) await giveBack(context, instance, stored, why)
    else if (!await putBack(context, instance, why)) throw await usedUp(context, instance, why, error)
    throw refused(instance, error)
  }
}

/** Gives back an image that no VM has gone on from. */
async function giveBack (context: Context, instance: LiveInstance, stored: StoredImage, why: string): Promise<void> {
  const paths = pathsIn(context, instance.id)
  await returnImage(paths)
  await dropKept(paths)
  await tidyImage(paths, stored)
  await noteProblem(context, instance, why)
}

async function expanded (context: Context, instance: LiveInstance, kept: StoredImage): Promise<StoredImage> {
  try {
    return await expandImage(context, instance, kept)
  } catch (error) {
    const named = namingFullDisk('restore', error)
    throw named === error ? refused(instance, error) : named
  }
}

/** The error for callers: they get the driver's reason; an unknown error is only logged. An error that passes by itself, or is about a volume, keeps its own code. */
function refused (instance: LiveInstance, error: unknown): unknown {
  return error instanceof BerthError && error.kind !== 'unavailable' && error.code !== 'volume_damaged' ? RestoreRefused.from(error, instance.name, error.message) : error
}

/** Makes the instance Stopped, as its memory is lost. Its disk is as after a power cut. */
async function usedUp (context: Context, instance: LiveInstance, why: string, cause?: unknown): Promise<unknown> {
  const patch = lostMemory(instance.record, why)
  await instance.save(patch)
  await dropMemory(pathsIn(context, instance.id))
  return ImageUsedUp.from(cause, instance.name, why)
}

/** The change of the row when the VM goes on from the image. */
export function restoredPatch ({ life }: InstanceRecord, handle: VmHandle, startedAt = Date.now()): RecordPatch {
  return { handle, standbyAt: null, startedAt, runningAt: null, stoppedAt: null, exit: null, life: { ...life, restart: startedState(life.restart, 'restore') } }
}

/** The change of the row when an instance in standby has lost its memory. */
export function lostMemory (record: InstanceRecord, why: string): Pick<InstanceRecord, 'handle' | 'standbyAt' | 'exit' | 'stoppedAt'> {
  return {
    handle: null,
    standbyAt: null,
    stoppedAt: record.stoppedAt ?? Date.now(),
    exit: { exitCode: null, exitMessage: `the memory of the instance was lost while it was in standby (${why}); its disk is as after a power cut` }
  }
}
