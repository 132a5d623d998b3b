// Takes a copy of an instance at one moment.
import { chmod, rm } from 'node:fs/promises'
import type { MemoryImage } from '../../../core/library/hypervisor.ts'
import type { Context } from '../context.ts'
import type { CopyFiles, CopyKind, InstanceCopy, InstanceState } from '../contract.ts'
import { copyWithRoom } from '../host/copy-with-room.ts'
import { namingFullDisk } from '../host/disk-full.ts'
import { requireProvenImaging } from '../memory-image/imaging.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { copyResting, wholeImage, type CopyTarget } from '../operations/copy-instance.ts'
import { copyRunning } from '../operations/copy-running.ts'
import { requireCapturable } from '../parts/all.ts'
import { ownVolumeOverlays } from '../volumes/files.ts'
import { describeCopy } from './copy.ts'
import { requireActive } from './rules.ts'
import { requireNoWorker } from '../workers/worker-memory.ts'

const CALL = 'snapshot'
const STATES: Readonly<Record<CopyKind, readonly InstanceState[]>> = { Standby: ['Running', 'Standby'], Stopped: ['Stopped'] }

/** Needs the lock of the instance. An instance that runs is paused meanwhile, and goes on whatever happens. When this fails, it leaves none of the files. */
export async function capture (context: Context, instance: LiveInstance, kind: CopyKind, files: CopyFiles): Promise<InstanceCopy> {
  requireActive(CALL, instance, STATES[kind])
  if (files.memory.algorithm !== undefined) throw new Error('a copy is captured as it is, and compressed afterwards')
  requireCapturable(context, CALL, instance.record, kind === 'Standby' ? 'copied' : 'none')
  if (kind === 'Standby') requireNoWorker(CALL, instance.record)
  if (instance.state === 'Running') await requireProvenImaging(context, CALL, instance.record)
  const { overlay, volumes, state, memory } = files
  try {
    const to = kind === 'Stopped' ? { overlay, volumes } : { overlay, volumes, image: { state, memory: memory.path } }
    const taken = await copyWithRoom(context, async (context, signal) => await take(context, instance, to, signal))
    for (const path of kind === 'Stopped' ? [overlay] : [overlay, state, memory.path]) await chmod(path, 0o600)
    await ownVolumeOverlays({ volumes }, undefined)
    // What outlives its source is whole.
    return describeCopy(instance.record, kind, taken.memory === undefined ? undefined : await wholeImage(taken.memory, memory.path), taken.newMachine)
  } catch (error) {
    for (const path of [overlay, volumes, state, memory.path]) await rm(path, { recursive: true, force: true })
    throw namingFullDisk(CALL, error)
  }
}

async function take (context: Context, instance: LiveInstance, to: CopyTarget, signal: AbortSignal): Promise<{ memory: MemoryImage | undefined, newMachine: boolean }> {
  // A guest that runs has been told its identity.
  if (instance.state === 'Running') return { memory: await copyRunning(context, CALL, instance, to, signal), newMachine: false }
  const stored = await copyResting(context, CALL, instance, to)
  // Only a fork can be new: one that has neither run nor slept since it was made.
  return { memory: stored?.image, newMachine: stored?.newMachine ?? instance.record.startedAt === null }
}
