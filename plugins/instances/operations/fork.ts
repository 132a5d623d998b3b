// Makes a new instance of another one, or of a copy of one: copies the disk, and the memory if the fork is to have it, under a new id, name and user. As with
// a create, the row says `creating` until the fork is whole, so that a crash at any step leaves no half of it.
import type { MemoryImage, RestoreOptions, Vm } from '../../../core/library/hypervisor.ts'
import { InvalidRequest, InvalidState } from '../../../core/errors/common.ts'
import { traced } from '../../../core/tracing/span.ts'
import { createUndo, type Undo } from '../../../core/undo.ts'
import type { ReadyImage } from '../../images/contract.ts'
import { withEnvironment } from '../copies/environment.ts'
import { identityOf, liveInstance, pathsIn, type Context } from '../context.ts'
import { copyWithRoom } from '../host/copy-with-room.ts'
import { namingFullDisk, requireDisk } from '../host/disk-full.ts'
import { ImageMissing, ImagingUnsupported } from '../errors.ts'
import { makeFolder, makeLogs, removeFiles, syncFiles } from '../folder/files.ts'
import { readImage, statePath, takeImage, type StoredImage } from '../memory-image/files.ts'
import { requireProvenImaging } from '../memory-image/imaging.ts'
import { withKernelHeaders } from '../guest/kernel-headers.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { requireWorkload } from '../guest/workload.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import { logOperation } from '../folder/operations-log.ts'
import { connectParts, requireCapturable, specForCopy } from '../parts/all.ts'
import type { Connection } from '../parts/connection.ts'
import { imageHolder, type InstanceRecord } from '../model/record.ts'
import { stateText } from '../model/state.ts'
import type { Asked, InstanceForkRequest } from '../model/request.ts'
import type { TARGET_STATES } from '../api/schemas.ts'
import { attach } from './attach.ts'
import type { StartTurn } from './starts.ts'
import { awaitAwake } from './awake.ts'
import { copyResting, own, targetIn, type CopyTarget } from './copy-instance.ts'
import { copyRunning } from './copy-running.ts'
import { allDone, insert } from './insert.ts'
import { converse, driverOf, launch, vmSpecOf } from './launch.ts'
import { releaseImage } from './release-image.ts'
import { memoryFor } from '../memory-image/base.ts'
import { sharesMemory } from '../memory-image/sharing.ts'
import { settleImage } from '../memory-image/sync.ts'
import { requireNoWorker } from '../workers/worker-memory.ts'

export type TargetState = typeof TARGET_STATES[number]

/** What a fork is to be. */
export interface ForkPlan extends Asked, Pick<InstanceRecord, 'name' | 'image' | 'imageDigest' | 'spec'> {
  readonly target: TargetState
  /** whether the fork goes on from the memory of its source */
  readonly withMemory: boolean
  /** Copies the source. Resolves with the facts about the memory, when that is copied too. */
  copy (context: Context, to: CopyTarget, signal: AbortSignal): Promise<MemoryImage | undefined>
}

/** A fork of which everything is known that it needs. */
export interface ResolvedFork {
  /** with the spec for a copy */
  readonly plan: ForkPlan
  readonly image: ReadyImage
  readonly began: number
}

/** A fork that has all of its files, but is not listed yet. */
export interface UnfinishedFork {
  readonly record: InstanceRecord
  readonly image: ReadyImage
  readonly target: TargetState
  /** what its VM is connected to; undefined when it gets no VM */
  readonly connection: Connection | undefined
  readonly undo: Undo
  readonly began: number
  /** absent when it gets no VM */
  readonly turn?: StartTurn
}

/** Copies the source; needs its lock. A source that runs is paused for that, and goes on whatever happens. */
export async function beginFork (context: Context, source: LiveInstance, request: InstanceForkRequest): Promise<UnfinishedFork> {
  const target = targetOf(source, request)
  // Asked once: a VM that is silent for a moment is Unknown, and the disk of a VM that runs must not be copied as if it were at rest.
  const runs = source.state === 'Running'
  requireCapturable(context, 'fork', source.record, runs ? 'own' : 'none')
  if (runs) requireNoWorker('fork', source.record)
  const { image, imageDigest, spec } = source.record
  return await gatherFork(context, await resolveFork(context, {
    name: request.name,
    caller: request.caller,
    image,
    imageDigest,
    spec: { ...withEnvironment(context, spec, request.env), source: { kind: 'instance', id: source.id, name: source.record.name } },
    target,
    withMemory: source.state !== 'Stopped' && target !== 'Stopped',
    async copy (context, to, signal) {
      if (!runs) return (await copyResting(context, 'fork', source, to))?.image
      if (source.session === undefined) throw InvalidState(`fork: the VM of instance ${source.name} has ended meanwhile`)
      return await copyRunning(context, 'fork', source, to, signal)
    }
  }))
}

/** Finds out what the fork needs, before anything of it is made. */
export async function resolveFork (context: Context, plan: ForkPlan): Promise<ResolvedFork> {
  const began = performance.now()
  const { imageDigest, withMemory } = plan
  const copied = await specForCopy(context, plan.spec, { call: 'fork', withMemory })
  const spec = withMemory ? copied : await withKernelHeaders(context, copied)
  if (withMemory) await requireProvenImaging(context, 'fork', plan)
  const image = await context.images.byDigest(imageDigest)
  if (image === undefined) throw ImageMissing(plan.image)
  requireWorkload({ name: plan.name, spec }, image, context.guest)
  await requireDisk(context, 'fork')
  // The name under which the source knows the image: other names may stand for the same content by now.
  return { plan: { ...plan, spec }, image: { ...image, name: plan.image }, began }
}

/** Gives the fork its row, its folder and its files. */
export async function gatherFork (context: Context, { plan, image, began }: ResolvedFork): Promise<UnfinishedFork> {
  const { name, spec, imageDigest, target } = plan
  const undo = createUndo()
  return await orTakeBack(context, undo, async () => {
    const record = await insert(context, { name, spec, image, purpose: target === 'Running' ? 'running' : 'resting' }, undo)
    // Copying counts for the turn, too: sixteen copies at the same time are ready no sooner than one after the other.
    const turn = target === 'Running' ? await context.starts.turn(plan.caller) : undefined
    if (turn !== undefined) undo.add(() => { turn.end() })
    const paths = pathsIn(context, record.id)
    const identity = identityOf(context, record)
    undo.add(async () => { await releaseImage(context, imageDigest, record.id) })
    undo.add(async () => { await removeFiles(paths) })
    await makeFolder(paths)
    await allDone([makeLogs(paths, identity), context.images.hold(imageDigest, imageHolder(record.id))])
    const connecting = target === 'Running' ? connectParts(context, record) : Promise.resolve(undefined)
    await allDone([copyInto(context, record, plan), connecting])
    return { record, image, target, connection: await connecting, undo, began, ...turn === undefined ? {} : { turn } }
  })
}

/** Fills a fork's folder with the copy. */
export async function copyInto (context: Context, record: InstanceRecord, { withMemory, copy }: Pick<ForkPlan, 'withMemory' | 'copy'>): Promise<void> {
  const paths = pathsIn(context, record.id)
  const shares = withMemory && await sharesMemory(context, record.spec)
  const to = await targetIn(paths, { withMemory, shares })
  const image = await copyWithRoom(context, async (context, signal) => await copy(context, to, signal))
  await own(paths, { identity: identityOf(context, record), newMachine: true, image })
}

/** Brings the fork to the state that it is to have, and adds it to the list. */
export async function finishFork (context: Context, fork: UnfinishedFork): Promise<LiveInstance> {
  const { record, undo, began, turn } = fork
  const instance = liveInstance(context, record)
  // Others may use the fork from the moment at which it is listed.
  return await context.locks.hold(record.id, async () => {
    await orTakeBack(context, undo, async () => { await settleIn(context, instance, fork) })
    context.instances.add(instance)
    undo.drop()
    const { session } = instance
    if (session !== undefined) {
      attach(context, instance, session)
      turn?.endWith(session)
      await awaitAwake(context, instance, session)
    }
    if (instance.record.standbyAt !== null) settleImage(context, instance)
    await logOperation(pathsIn(context, record.id).operations, `fork: done in ${Math.round(performance.now() - began)} ms`, context.log)
    return instance
  })
}

async function settleIn (context: Context, instance: LiveInstance, fork: UnfinishedFork): Promise<void> {
  const paths = pathsIn(context, instance.id)
  const stored = await readImage(paths, 'whole')
  if (fork.connection !== undefined) return await run(context, instance, stored, fork, fork.connection)
  await syncFiles(paths)
  await instance.save({ status: 'active', standbyAt: stored === undefined ? null : Date.parse(stored.image.capturedAt) })
}

/** Starts the fork's VM, on the copied memory when there is one. */
async function run (context: Context, instance: LiveInstance, stored: StoredImage | undefined, { image, undo }: UnfinishedFork, connection: Connection): Promise<void> {
  const { record } = instance
  const start = async (): Promise<{ vm: Vm, session: GuestSession, startedAt: number }> => {
    const vm = stored === undefined ? await launch(context, record, image, connection) : await restoreCopy(context, record, { image, stored, connection })
    const session = converse(context, record, { image, vm, origin: stored === undefined ? 'launched' : 'restored', newMachine: true })
    undo.add(async () => {
      await vm.kill()
      session.release()
    })
    return { vm, session, startedAt: Date.now() }
  }
  const starting = start()
  await allDone([starting, syncFiles(pathsIn(context, record.id))])
  const { vm, session, startedAt } = await starting
  const failure = await instance.replaceSession(session, { status: 'active', handle: vm.handle, startedAt })
  if (failure !== undefined) throw failure
}

/** What a VM is started on that goes on from a copied memory. */
interface CopiedVm { readonly image: ReadyImage, readonly stored: StoredImage, readonly connection: Connection }

/** Starts a VM on the copied memory. */
export async function restoreCopy (context: Context, record: InstanceRecord, { image, stored, connection }: CopiedVm, options: RestoreOptions = {}): Promise<Vm> {
  const { imaging } = driverOf(context, record)
  if (imaging === undefined) throw ImagingUnsupported('fork', record.spec.hypervisor)
  const paths = pathsIn(context, record.id)
  await takeImage(paths, stored)
  const spec = await vmSpecOf(context, record, image, connection)
  return await traced(`restore VM ${record.spec.hypervisor}`, {}, async () => await imaging.restore({ ...spec, memory: memoryFor(paths, stored, 'taken') }, stored.image, statePath(paths, 'taken'), options))
}

function targetOf ({ name, state, derived }: LiveInstance, { fromRunning, targetState: asked }: InstanceForkRequest): TargetState {
  if (state !== 'Stopped' && state !== 'Standby' && !(state === 'Running' && fromRunning)) {
    throw InvalidState(`fork: instance ${name} must be Stopped or Standby, or Running with from_running (current state: ${stateText(derived)})`)
  }
  if (state === 'Stopped' && asked === 'Standby') throw InvalidRequest(`target_state: instance ${name} is Stopped and has no memory, so its fork can be Stopped or Running`)
  return asked ?? state
}

async function orTakeBack<T> (context: Context, undo: Undo, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    for (const failure of await undo.run()) context.log.error({ err: failure }, 'a step of a failed fork could not be taken back')
    throw namingFullDisk('fork', error)
  }
}
