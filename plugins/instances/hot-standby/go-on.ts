// Restores an instance with the VM that was kept at its standby. This uses the image up, as any restore does: before the guest takes a step, the image is taken, and the VM that it was taken for is noted.
import { isDeepStrictEqual } from 'node:util'
import { rm } from 'node:fs/promises'
import type { Vm } from '../../../core/library/hypervisor.ts'
import { pathsIn, type Context } from '../context.ts'
import { dropKept, isUntouched, markTouched, noteTaker, returnImage, takeImage, type StoredImage } from '../memory-image/files.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { allDone } from '../operations/insert.ts'
import { admitParts, resumeParts } from '../parts/all.ts'
import type { Kept } from './contract.ts'
import { KeptVmUnfit } from './unfit.ts'

/** A kept VM had all of its state but did not go on: nobody knows whether its guest has taken a step. */
export class KeptVmLost extends Error {
  override readonly name = 'KeptVmLost'
}

/** Takes the kept VM of this very image, for the caller alone. A VM that does not fit is ended. */
export async function takeKept (context: Context, instance: LiveInstance, stored: StoredImage): Promise<Kept | undefined> {
  const kept = context.kept.take(instance.id)
  if (kept === undefined) {
    // A VM that is being ended has the files and the network device until then.
    await context.kept.end(instance.id, 'unfit')
    return undefined
  }
  if (await fits(context, instance, kept, stored)) return kept
  await context.kept.giveUp(kept, 'unfit')
  return undefined
}

async function fits (context: Context, { id, record }: LiveInstance, { vm, image, record: then }: Kept, stored: StoredImage): Promise<boolean> {
  const isSame = stored.compressed === undefined && stored.memoryMark === image.memoryMark && stored.image.capturedAt === image.image.capturedAt &&
    isDeepStrictEqual(record.spec, then.spec) && record.imageDigest === then.imageDigest
  return isSame && vm.state.status === 'paused' && await isUntouched(pathsIn(context, id), stored)
}

/**
 * Resolves with the VM, whose guest runs; with `undefined` when the VM could not go on, and the image is as it was. In every other case the VM is gone.
 * @throws what the parts have to say, such as insufficient_resources: the image is as it was; KeptVmLost: it is used up
 */
export async function goOn (context: Context, instance: LiveInstance, kept: Kept, stored: StoredImage): Promise<Vm | undefined> {
  const { record } = instance
  const paths = pathsIn(context, instance.id)
  const { vm } = kept
  let isTaken = false
  const take = async (): Promise<void> => {
    await dropKept(paths)
    await takeImage(paths, stored)
    isTaken = true
    await noteTaker(paths, vm.handle)
  }
  try {
    await admitParts(context, record)
    await allDone([resumeParts(context, record), take()])
    if (vm.state.status !== 'paused') throw new KeptVmUnfit('its VM has ended')
    await markTouched(paths)
  } catch (error) {
    await context.kept.giveUp(kept, 'unfit')
    if (isTaken) await returnImage(paths)
    if (!(error instanceof KeptVmUnfit)) throw error
    context.log.warn({ err: error, instance: instance.id }, 'a VM that was kept in standby is of no use; another one is started on its image')
    return undefined
  }
  try {
    await kept.imaging.resume()
  } catch (error) {
    await context.kept.giveUp(kept, 'died')
    throw new KeptVmLost(error instanceof Error ? error.message : String(error), { cause: error })
  }
  // The reclaim that asked the guest for memory may be over.
  vm.balloon?.aim(vm.balloon.wholeBytes).catch((error: unknown) => { context.log.debug({ err: error, instance: instance.id }, 'a guest could not be given its memory back') })
  return vm
}

/** Removes the memory of an image that is used up, when the VM that goes on has its memory elsewhere. Nobody waits for it. */
export function dropUsedMemory (context: Context, instance: LiveInstance, session: GuestSession): void {
  if (session.vm.imaging?.memoryFile !== undefined) return
  context.locks.hold(instance.id, async () => {
    // Another image may have been made by now.
    if (instance.session === session) await rm(pathsIn(context, instance.id).memory, { force: true })
  }).catch((error: unknown) => { context.log.warn({ err: error, instance: instance.id }, 'the memory of an image that is used up could not be removed') })
}
