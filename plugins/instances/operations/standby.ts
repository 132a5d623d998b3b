// Puts an instance in standby: its guest is put to sleep, its VM captured as a memory image, its VMM ended or kept. Killed between any two steps, the next start of
// the server wakes the guest again as long as the image is not whole, and finishes the standby once it is.
import type { VmImaging } from '../../../core/library/hypervisor.ts'
import { InvalidState } from '../../../core/errors/common.ts'
import { withRoom } from '../../../core/fs/with-room.ts'
import { bootId } from '../../../core/process/identity.ts'
import { createUndo, type Undo } from '../../../core/undo.ts'
import { identityOf, pathsIn, type Context } from '../context.ts'
import { namingFullDisk } from '../host/disk-full.ts'
import { ImagingUnsupported } from '../errors.ts'
import { giveFile } from '../folder/files.ts'
import { isKeepable, keep } from '../hot-standby/keep.ts'
import { beginImage, changesPath, completeImage, dropCaptured, dropImage, statePath, type StoredImage } from '../memory-image/files.ts'
import { savesChanges } from '../memory-image/sharing.ts'
import { requireProvenImaging } from '../memory-image/imaging.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import { logOperation } from '../folder/operations-log.ts'
import { disconnectPartsBehind, requireCapturable, suspendPartsBehind } from '../parts/all.ts'
import { requireState } from '../model/state.ts'
import { requireSettledVolumes } from '../volumes/rules.ts'
import { settleImage } from '../memory-image/sync.ts'
import { requireNoWorker } from '../workers/worker-memory.ts'
import { leaving } from './leaving.ts'
import { storeLater } from './store-later.ts'

const GUEST_WAIT_MS = 5000

/**
 * Returns once the image is whole, and the VM is gone or kept for a restore soon. After that the image is synced, and then compressed.
 * @param wanted as in `StoredImage`
 * @param lastLook called when all of it can still be taken back; throws to take it back
 */
export async function standby (context: Context, instance: LiveInstance, wanted: StoredImage['wanted'], lastLook?: () => Promise<void>): Promise<void> {
  await leaving(instance, async () => { await takeToStandby(context, instance, wanted, lastLook) })
}

async function takeToStandby (context: Context, instance: LiveInstance, wanted: StoredImage['wanted'], lastLook: (() => Promise<void>) | undefined): Promise<void> {
  requireState('standby', instance.name, instance.derived)
  requireCapturable(context, 'standby', instance.record, 'own')
  requireNoWorker('standby', instance.record)
  const { session, imaging } = requireImaging('standby', instance)
  await requireProvenImaging(context, 'standby', instance.record)
  const paths = pathsIn(context, instance.id)
  const isKept = isKeepable(context, instance.record)
  const { vm, vm: { handle } } = session
  const { pid, startTicks, bootId: boot } = handle
  const undo = createUndo()
  const began = performance.now()
  try {
    await sleepIn(context, instance, session, undo)
    const asleep = performance.now()
    if (isKept) {
      // Before the capture: a VMM notes in the guest's memory that somebody connects or leaves, and no byte of that memory may change afterwards.
      session.hush()
      undo.add(() => { session.speak() })
    }
    if (imaging.memoryFile === undefined) await dropCaptured(paths)
    const mayStayOnBase = imaging.memoryBase !== undefined && savesChanges(context, instance.record.spec, wanted)
    const files = { statePath: statePath(paths, 'making'), memoryPath: paths.memory, ...mayStayOnBase ? { changesPath: changesPath(paths, 'making') } : {} }
    // Next to nothing is written where the memory is in a file already.
    const image = imaging.memoryFile === undefined ? await withRoom(context.disk, [], async (signal) => await imaging.capture(files, signal)) : await imaging.capture(files)
    const onBase = image.changes === true ? { changes: true } : undefined
    undo.add(async () => { await imaging.resume() })
    const captured = performance.now()
    if (imaging.memoryFile === undefined && onBase === undefined) await giveFile(paths.memory, identityOf(context, instance.record))
    await lastLook?.()
    // Its end was told to the instance already, whose memory is being removed: from the next step on it is told to nobody.
    if (vm.state.status === 'gone') throw new Error('its VM has ended')
    session.setLeaving(true)
    undo.add(() => { session.setLeaving(false) })
    // The first step of taking back: a whole image must be an image that no VM has gone on from.
    undo.add(async () => { await dropImage(paths) })
    const stored = await completeImage(paths, { image, source: { pid, startTicks, bootId: boot }, newMachine: false, bootId: bootId(), ...(onBase === undefined ? {} : { onBase }), ...(wanted === undefined ? {} : { wanted }) })
    if (isKept) session.part()
    else await session.putAway()
    undo.drop()
    const standbyAt = Date.parse(image.capturedAt)
    if (isKept) {
      keep(context, instance.record, { vm, imaging }, stored)
      await noteStandby(context, instance, standbyAt)
      suspendPartsBehind(context, instance.record)
    } else await storeStandby(context, instance, standbyAt)
    await logOperation(paths.operations, `standby: asleep after ${ms(began, asleep)}, captured after ${ms(asleep, captured)}, VM ${isKept ? 'set aside' : 'gone'} after ${ms(captured, performance.now())}`, context.log)
  } catch (error) {
    throw await takenBack(context, { call: 'standby', instance, session }, undo, error)
  }
  settleImage(context, instance)
}

/** For an instance whose VM has gone: disconnects it and notes its standby. The standby holds even when it cannot be stored yet: the next start of the server finds the image. */
export async function storeStandby (context: Context, instance: LiveInstance, standbyAt: number): Promise<void> {
  await Promise.all([noteStandby(context, instance, standbyAt), disconnectPartsBehind(context, instance.record)])
}

async function noteStandby (context: Context, instance: LiveInstance, standbyAt: number): Promise<void> {
  const patch = { handle: null, runningAt: null, standbyAt, stoppedAt: Math.max(standbyAt, instance.record.startedAt ?? 0) }
  instance.setImageProblem(undefined)
  storeLater(context, instance, await instance.replaceSession(undefined, patch), 'a standby')
}

/** @throws ImagingUnsupported when no memory image can be made of its VM */
export function requireImaging (call: string, instance: LiveInstance): { session: GuestSession, imaging: VmImaging } {
  const { session } = instance
  const imaging = session?.vm.imaging
  if (session === undefined || imaging === undefined) throw ImagingUnsupported(call, instance.record.spec.hypervisor)
  return { session, imaging }
}

/** Puts the guest to sleep. The folder for its image was made before, so that a later server knows that it may have to wake the guest. */
export async function sleepIn (context: Context, instance: LiveInstance, session: GuestSession, undo: Undo): Promise<void> {
  requireSettledVolumes('standby', instance.record)
  const paths = pathsIn(context, instance.id)
  await beginImage(paths)
  undo.add(async () => { await dropImage(paths) })
  await session.sleep(GUEST_WAIT_MS, new AbortController().signal)
  undo.add(async () => { await session.wake() })
}

/** Takes back the steps on a VM that goes on. Returns the error to answer with. */
export async function takenBack (context: Context, { call, instance, session }: { readonly call: string, readonly instance: LiveInstance, readonly session: GuestSession }, undo: Undo, error: unknown): Promise<unknown> {
  const failures = await undo.run()
  if (session.vm.state.status === 'gone') {
    await instance.settling
    return InvalidState(`${call}: the VM of instance ${instance.name} has ended meanwhile`)
  }
  for (const failure of failures) context.log.error({ err: failure, instance: instance.id }, `a step of a failed ${call} could not be taken back`)
  return namingFullDisk(call, error)
}

function ms (from: number, to: number): string {
  return `${Math.round(to - from)} ms`
}
