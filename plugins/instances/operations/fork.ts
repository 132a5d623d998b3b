// Makes a second instance out of one: its disk, and if both are to have one, its memory, copied under a new id, name and user. As with a create,
// the row says `creating` until the fork is whole, so that a crash at any step leaves no half of it.
import type { Vm } from '../../../core/contracts/hypervisor.ts'
import { InvalidRequest, InvalidState } from '../../../core/errors/common.ts'
import { createUndo, type Undo } from '../../../core/undo.ts'
import type { ReadyImage } from '../../images/contract.ts'
import { identityOf, liveInstance, pathsIn, type Context } from '../context.ts'
import { ImageMissing, ImagingUnsupported } from '../errors.ts'
import { makeFolder, makeLogs, removeFiles, syncFiles } from '../files.ts'
import { readImage, statePath, takeImage, type StoredImage } from '../image-files.ts'
import type { LiveInstance } from '../live-instance.ts'
import { logOperation } from '../operations-log.ts'
import { imageHolder, type InstanceRecord } from '../record.ts'
import type { ForkInstance, TARGET_STATES } from '../schemas.ts'
import { attach } from './attach.ts'
import { awaitAwake } from './awake.ts'
import { copyResting, copyRunning } from './fork-copy.ts'
import { allDone, insert } from './insert.ts'
import { converse, driverOf, launch, vmSpecOf } from './launch.ts'
import { settleImage } from './sync-image.ts'

type TargetState = typeof TARGET_STATES[number]

/** A fork that has all of its files and is not yet known to anybody. */
export interface UnfinishedFork {
  readonly record: InstanceRecord
  readonly image: ReadyImage
  readonly target: TargetState
  readonly undo: Undo
  readonly began: number
}

/** Copies the source, whose lock is held. A source that runs is paused for that, and goes on whatever happens. */
export async function beginFork (context: Context, source: LiveInstance, body: ForkInstance): Promise<UnfinishedFork> {
  const began = performance.now()
  const target = targetOf(source, body)
  const withMemory = source.state !== 'Stopped' && target !== 'Stopped'
  if (withMemory && driverOf(context, source.record).imaging === undefined) throw ImagingUnsupported('fork', source.record.spec.hypervisor)
  const image = await context.images.byDigest(source.record.imageDigest)
  if (image === undefined) throw ImageMissing(source.record.image)
  const undo = createUndo()
  return await orTakeBack(context, undo, async () => {
    const record = await insert(context, body.name, source.record.spec, image)
    undo.add(async () => { await context.repository.remove(record.id) })
    const paths = pathsIn(context, record.id)
    undo.add(async () => { await context.images.release(image.digest, imageHolder(record.id)) })
    undo.add(async () => { await removeFiles(paths) })
    await makeFolder(paths)
    await allDone([makeLogs(paths, identityOf(context, record)), context.images.hold(image.digest, imageHolder(record.id))])
    if (source.state === 'Running') await copyRunning(context, source, record, withMemory)
    else await copyResting(context, source, record, withMemory)
    return { record, image, target, undo, began }
  })
}

/** Brings the fork to the state that it is to have, and makes it known. */
export async function finishFork (context: Context, fork: UnfinishedFork): Promise<LiveInstance> {
  const { record, undo, began } = fork
  const instance = liveInstance(context, record)
  // From the moment at which it is known, others may ask for it.
  return await context.locks.hold(record.id, async () => {
    await orTakeBack(context, undo, async () => { await settleIn(context, instance, fork) })
    context.instances.add(instance)
    undo.drop()
    const { machine } = instance
    if (machine !== undefined) {
      attach(context, instance, machine)
      await awaitAwake(context, instance, machine)
    }
    if (instance.record.standbyAt !== null) settleImage(context, instance)
    await logOperation(pathsIn(context, record.id).operations, `fork: done in ${Math.round(performance.now() - began)} ms`, context.log)
    return instance
  })
}

async function settleIn (context: Context, instance: LiveInstance, { image, target, undo }: UnfinishedFork): Promise<void> {
  const paths = pathsIn(context, instance.id)
  const stored = await readImage(paths, 'whole')
  if (target === 'Running') return await run(context, instance, image, stored, undo)
  await syncFiles(paths)
  await instance.save({ status: 'active', standbyAt: stored === undefined ? null : Date.parse(stored.image.capturedAt) })
}

/** Starts the fork's VM, on the copied memory when there is one. */
async function run (context: Context, instance: LiveInstance, image: ReadyImage, stored: StoredImage | undefined, undo: Undo): Promise<void> {
  const { record } = instance
  const vm = stored === undefined ? await launch(context, record, image) : await restoreCopy(context, record, image, stored)
  const startedAt = Date.now()
  const machine = converse(context, record, image, vm, stored === undefined ? 'fresh' : 'restored', true)
  undo.add(async () => {
    await vm.kill()
    machine.release()
  })
  await syncFiles(pathsIn(context, record.id))
  const failure = await instance.replaceMachine(machine, { status: 'active', handle: vm.handle, startedAt })
  if (failure !== undefined) throw failure
}

async function restoreCopy (context: Context, record: InstanceRecord, image: ReadyImage, stored: StoredImage): Promise<Vm> {
  const { imaging } = driverOf(context, record)
  if (imaging === undefined) throw ImagingUnsupported('fork', record.spec.hypervisor)
  const paths = pathsIn(context, record.id)
  await takeImage(paths, stored)
  return await imaging.restore({ ...await vmSpecOf(context, record, image), memory: { path: paths.memory, sharing: 'shared' } }, stored.image, statePath(paths, 'taken'))
}

function targetOf ({ name, state, derived }: LiveInstance, { from_running: fromRunning = false, target_state: asked }: ForkInstance): TargetState {
  if (state !== 'Stopped' && state !== 'Standby' && !(state === 'Running' && fromRunning)) {
    const now = derived.error === undefined ? state : `${state}: ${derived.error}`
    throw InvalidState(`fork: instance ${name} must be Stopped or Standby, or Running with from_running (current state: ${now})`)
  }
  if (state === 'Stopped' && asked === 'Standby') throw InvalidRequest(`target_state: instance ${name} is Stopped and has no memory, so its fork can be Stopped or Running`)
  return asked ?? state
}

async function orTakeBack<T> (context: Context, undo: Undo, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    for (const failure of await undo.run()) context.log.error({ err: failure }, 'a step of a failed fork could not be taken back')
    throw error
  }
}
