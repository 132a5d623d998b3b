// Makes an instance of a spare VM: its row gets the instance's name, and the VM its disks. Then the VM goes on, and its guest is told what to run.
import { BerthError } from '../../../core/errors/define.ts'
import { liveInstance, type Context } from '../context.ts'
import { NameTaken } from '../errors.ts'
import { lifeOf } from '../life/begin.ts'
import { fitsOnDisk } from '../memory-image/memory-file.ts'
import { reserveAtClaim } from '../parts/all.ts'
import { lift, mediate } from '../parts/policy.ts'
import { withBandwidthShare } from '../parts/bandwidth.ts'
import { claimRoom, disclaimRoom } from '../parts/room.ts'
import { instancesFolder } from '../folder/paths.ts'
import { imageHolder, type InstanceRecord, type InstanceSpec } from '../model/record.ts'
import type { Spare } from '../templates/contract.ts'
import type { Creation, Made } from './made.ts'
import { converse } from './launch.ts'

// A spare VM has no volumes. Giving it some would take longer than a clone, which has them from its start.
/** Whether both have the same bandwidth. A spare VM has the share of its vCPUs, which does not change. */
const areConnectedAlike = (one: InstanceSpec, other: InstanceSpec): boolean => one.network?.downloadBps === other.network?.downloadBps && one.network?.uploadBps === other.network?.uploadBps

/** Undefined when there is no spare VM, or none that can be used; nothing is left of it then. @throws NameTaken */
export async function createFromSpare (context: Context, creation: Creation): Promise<Made | undefined> {
  const { spec, shape, steps } = creation
  // The memory file of a VM that runs must be able to grow.
  if (shape === undefined || !areConnectedAlike(spec, withBandwidthShare(context, { ...spec, network: { enabled: spec.network?.enabled === true } })) || spec.volumes !== undefined || !await fitsOnDisk(instancesFolder(context.dataDir), spec.memoryBytes)) return undefined
  for (let spare = context.templates.take(shape); spare !== undefined; spare = context.templates.take(shape)) {
    // The capacity of the host has changed since the spare VM was made.
    if (!areConnectedAlike(spec, spare.record.spec)) {
      await spare.end()
      continue
    }
    const record = await claim(context, spare, creation)
    if (record !== undefined) {
      steps.note('together')
      await reserveAtClaim(context, record).catch(async (error: unknown) => {
        await spare?.end()
        throw error
      })
      const made = await start(context, spare, record, creation)
      if (made !== undefined) return made
    }
    steps.note('a spare VM that was of no use')
  }
  return undefined
}

/** Gives the VM its row and its disks, at the same time; until the VM goes on, both can be taken back. Undefined when the VM has failed and is gone. @throws NameTaken, insufficient_resources */
async function claim (context: Context, spare: Spare, { name, spec, image, steps }: Creation): Promise<InstanceRecord | undefined> {
  const admitted = steps.during('room', claimRoom(context, { id: spare.record.id, name, spec }, 'running'))
  // In this order: the VMM works while the database waits for the disk.
  const [disks, row] = await Promise.allSettled([
    steps.during('disks', spare.putDisks(image.rootfs, spec.overlayBytes)),
    admitted.then(async () => await steps.during('row', context.repository.claim(spare.record, { name, spec: { ...spec, source: { kind: 'template', id: spare.key } }, image: image.name, imageDigest: image.digest, createdAt: Date.now() })))
  ])
  if (row.status === 'fulfilled' && row.value !== undefined && disks.status === 'fulfilled') return row.value
  const isRefused = await admitted.then(() => false, () => true)
  if (!isRefused) await disclaimRoom(context, spare.record.id)
  const isTaken = row.status === 'fulfilled' && row.value === undefined
  // Its guest has not taken a step, so the VM is still good.
  if ((isTaken || isRefused) && disks.status === 'fulfilled') context.templates.giveBack(spare)
  else await spare.end()
  if (isTaken) throw NameTaken(name)
  if (isRefused && row.status === 'rejected') throw row.reason
  for (const result of [row, disks]) if (result.status === 'rejected') context.log.warn({ err: result.reason, vm: spare.record.id }, 'a spare VM could not become an instance')
  return undefined
}

/** Lets the guest go on, and stores that there is an instance. Undefined when the VM does not go on, and is gone. */
async function start (context: Context, spare: Spare, record: InstanceRecord, { image, steps }: Creation): Promise<Made | undefined> {
  try {
    if (record.spec.diskIoBps !== undefined) await spare.vm.limitDisks?.(record.spec.diskIoBps)
    // The guest's egress has been direct so far, but the guest has not taken a step since it was connected.
    await mediate(context, record)
    if (record.spec.egress !== undefined) steps.note('policy')
    await spare.imaging.resume()
  } catch (error) {
    await end(context, spare, record)
    // Another VM would fail in the same way.
    if (error instanceof BerthError && error.kind === 'unavailable') throw error
    context.log.warn({ err: error, vm: record.id }, 'a spare VM did not go on')
    return undefined
  }
  const startedAt = Date.now()
  const session = converse(context, record, { image, vm: spare.vm, origin: 'launched', link: spare.link })
  steps.note('resumed')
  const instance = liveInstance(context, record)
  try {
    // This goes on while the guest starts its program.
    await context.images.hold(image.digest, imageHolder(record.id))
    steps.note('image held')
    await instance.save({ status: 'active', handle: spare.vm.handle, startedAt, life: lifeOf(record.spec) })
  } catch (error) {
    await end(context, spare, record)
    session.release()
    await context.images.release(image.digest, imageHolder(record.id))
    throw error
  }
  steps.note('stored')
  spare.handOver()
  return { instance, session, way: 'spare' }
}

/** With the policy that the instance was given: the spare VM itself never had one. */
async function end (context: Context, spare: Spare, record: InstanceRecord): Promise<void> {
  await lift(context, record)
  await spare.end()
}
