// Makes an instance of a spare VM: its row gets the instance's name, and the VM its disks. Then the VM goes on, and its guest is told what it is now.
import { BerthError } from '../../../core/errors/define.ts'
import { createUndo } from '../../../core/undo.ts'
import type { ReadyImage } from '../../images/contract.ts'
import { liveInstance, type Context } from '../context.ts'
import { NameTaken } from '../errors.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import type { Life } from '../life/record.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { imageHolder, type InstanceRecord, type InstanceSpec } from '../model/record.ts'
import { openPort } from '../parts/address.ts'
import { reserveAtClaim } from '../parts/all.ts'
import { lift, mediate } from '../parts/policy.ts'
import { claimRoom, disclaimRoom } from '../parts/room.ts'
import type { Spare } from '../spares/contract.ts'
import { converse, type Conversation } from './launch.ts'
import { releaseImage } from './release-image.ts'
import type { Steps } from './steps.ts'

/** The instance that a spare VM is to become. */
export interface Claim {
  readonly name: string
  readonly spec: InstanceSpec
  readonly image: ReadyImage
  /** how its guest is spoken to */
  readonly guest: Pick<Conversation, 'origin' | 'newMachine'>
  readonly life?: Life
  readonly steps: Steps
}

/** An instance that is stored, but not listed yet. */
export interface Became { readonly instance: LiveInstance, readonly session: GuestSession }

/** Undefined when the VM cannot be used, and is gone. @throws NameTaken, insufficient_resources, and what the parts throw */
export async function becomeInstance (context: Context, spare: Spare, claim: Claim): Promise<Became | undefined> {
  const record = await claimRow(context, spare, claim)
  if (record === undefined) return undefined
  claim.steps.note('together')
  await reserveAtClaim(context, record).catch(async (error: unknown) => {
    await spare.end()
    throw error
  })
  return await letGo(context, spare, record, claim)
}

/** Gives the VM its row and its disks, at the same time; until the VM goes on, both can be taken back. Undefined when the VM has failed and is gone. @throws NameTaken, insufficient_resources */
async function claimRow (context: Context, spare: Spare, { name, spec, image, steps }: Claim): Promise<InstanceRecord | undefined> {
  const admitted = steps.during('room', claimRoom(context, { id: spare.record.id, name, spec }, 'running'))
  // In this order: the VMM works while the database waits for the disk.
  const [disks, row] = await Promise.allSettled([
    spare.disks === undefined ? Promise.resolve() : steps.during('disks', spare.disks.put(image.rootfs, spec.overlayBytes)),
    admitted.then(async () => await steps.during('row', context.repository.claim(spare.record, { name, spec, image: image.name, imageDigest: image.digest, createdAt: Date.now() })))
  ])
  if (row.status === 'fulfilled' && row.value !== undefined && disks.status === 'fulfilled') return row.value
  const isRefused = await admitted.then(() => false, () => true)
  // A claim that was not refused but failed may be stored all the same.
  const isDisclaimed = await disclaimRoom(context, spare.record.id).then(() => true, () => false)
  const isTaken = row.status === 'fulfilled' && row.value === undefined
  // Its guest has not taken a step, so the VM is still good. One that may have a claim is not: its end gives that back, now or later.
  if ((isTaken || isRefused) && disks.status === 'fulfilled' && isDisclaimed) context.spares.giveBack(spare)
  else await spare.end()
  if (isTaken) throw NameTaken(name)
  if (isRefused && row.status === 'rejected') throw row.reason
  for (const result of [row, disks]) if (result.status === 'rejected') context.log.warn({ err: result.reason, vm: spare.record.id }, 'a spare VM could not become an instance')
  return undefined
}

/** Lets the guest go on, and stores that there is an instance. Undefined when the VM does not go on, and is gone. */
async function letGo (context: Context, spare: Spare, record: InstanceRecord, { image, guest, life, steps }: Claim): Promise<Became | undefined> {
  try {
    if (record.spec.diskIoBps !== undefined) await spare.vm.limitDisks?.(record.spec.diskIoBps)
    // The guest's egress has been direct so far, but the guest has not taken a step since it was connected; where it has, its port is closed.
    await mediate(context, record)
    if (record.spec.egress !== undefined) steps.note('policy')
    if (guest.origin === 'restored') await openPort(context, record)
    await spare.imaging.resume()
  } catch (error) {
    await end(context, spare, record)
    // Another VM would fail in the same way.
    if (error instanceof BerthError && error.kind === 'unavailable') throw error
    context.log.warn({ err: error, vm: record.id }, 'a spare VM did not go on')
    return undefined
  }
  const startedAt = Date.now()
  const session = converse(context, record, { image, vm: spare.vm, link: spare.link, ...guest })
  steps.note('resumed')
  const instance = liveInstance(context, record)
  try {
    // This goes on while the guest starts its program, or wakes up.
    await context.images.hold(image.digest, imageHolder(record.id))
    steps.note('image held')
    await instance.save({ status: 'active', handle: spare.vm.handle, startedAt, ...life === undefined ? {} : { life } })
  } catch (error) {
    const undo = createUndo()
    undo.add(async () => { await releaseImage(context, image.digest, record.id) })
    undo.add(() => { session.release() })
    undo.add(async () => { await end(context, spare, record) })
    for (const failure of await undo.run()) context.log.error({ err: failure, vm: record.id }, 'a step of a failed create or fork could not be taken back')
    throw error
  }
  steps.note('stored')
  spare.handOver()
  return { instance, session }
}

/** With the policy that the instance was given: the spare VM itself never had one. */
async function end (context: Context, spare: Spare, record: InstanceRecord): Promise<void> {
  await lift(context, record)
  await spare.end()
}
