// Creates an instance: a row first, then its files, then its VM. Killed between any two steps, the row says `creating`,
// and the next start of the server removes all of it.
import { createId } from '@paralleldrive/cuid2'
import { NameConflict } from '../../../core/errors/common.ts'
import { createUndo, type Undo } from '../../../core/undo.ts'
import type { ReadyImage } from '../../images/contract.ts'
import { identityOf, liveInstance, pathsIn, type Context } from '../context.ts'
import { HostSlotsExhausted } from '../errors.ts'
import { makeFiles, removeFiles, syncFiles } from '../files.ts'
import type { LiveInstance } from '../live-instance.ts'
import { logOperation } from '../operations-log.ts'
import { imageHolder, type InstanceRecord, type InstanceSpec } from '../record.ts'
import type { CreateInstance } from '../schemas.ts'
import { specOf } from '../validate/create.ts'
import { argvOf } from '../workload.ts'
import { attach } from './attach.ts'
import { converse, launch } from './launch.ts'

/** Returns once the VM is launched; its guest may still be booting. */
export async function create (context: Context, body: CreateInstance): Promise<LiveInstance> {
  const spec = specOf(body, context.settings, context.hypervisors)
  const image = await context.images.require(body.image, context.settings.imageWaitMs)
  argvOf(spec, image)
  const undo = createUndo()
  try {
    const instance = await context.metrics.timed('create', async () => await build(context, body.name, spec, image, undo))
    undo.drop()
    return instance
  } catch (error) {
    const failures = await undo.run()
    for (const failure of failures) context.log.error({ err: failure }, 'a step of a failed create could not be taken back')
    throw error
  }
}

async function build (context: Context, name: string, spec: InstanceSpec, image: ReadyImage, undo: Undo): Promise<LiveInstance> {
  const began = performance.now()
  const record = await insert(context, name, spec, image)
  undo.add(async () => { await context.repository.remove(record.id) })
  const paths = pathsIn(context, record.id)
  undo.add(async () => { await context.images.release(image.digest, imageHolder(record.id)) })
  undo.add(async () => { await removeFiles(paths) })
  // All of them end before an undo may begin, so none works on what another one has taken back.
  await allDone([
    makeFiles(paths, spec.overlayBytes, identityOf(context, record), context.commands),
    context.images.hold(image.digest, imageHolder(record.id)),
    context.guest.system()
  ])
  const vm = await launch(context, record, image)
  const startedAt = Date.now()
  const machine = converse(context, record, image, vm, 'fresh')
  undo.add(async () => {
    await vm.kill()
    machine.release()
  })
  const instance = liveInstance(context, record)
  await syncFiles(paths)
  await instance.save({ status: 'active', handle: vm.handle, startedAt })
  context.instances.add(instance)
  attach(context, instance, machine)
  await logOperation(paths.operations, `create: done in ${Math.round(performance.now() - began)} ms`, context.log)
  return instance
}

/** Stores the row that reserves the name and the VM's user. @throws NameConflict */
async function insert (context: Context, name: string, spec: InstanceSpec, image: ReadyImage): Promise<InstanceRecord> {
  // A slot that another create takes in between makes the insert fail, and the next free one is tried.
  const taken = new Set(context.instances.all().map((instance) => instance.record.slot))
  const { vmUserCount } = context.settings
  for (let slot = 0; slot < vmUserCount; slot++) {
    if (context.separateUsers && taken.has(slot)) continue
    const record = newRecord(context, name, spec, image, context.separateUsers ? slot : null)
    const clash = await context.repository.insert(record)
    if (clash === undefined) return record
    if (clash === 'name') throw NameConflict(`name: an instance named ${name} exists already`)
  }
  throw HostSlotsExhausted(vmUserCount)
}

function newRecord (context: Context, name: string, spec: InstanceSpec, image: ReadyImage, slot: number | null): InstanceRecord {
  return {
    id: createId(),
    hostId: context.hostId,
    name,
    status: 'creating',
    version: 1,
    createdAt: Date.now(),
    image: image.name,
    imageDigest: image.digest,
    spec,
    slot,
    handle: null,
    startedAt: null,
    runningAt: null,
    stoppedAt: null,
    exit: null
  }
}

async function allDone (work: readonly Promise<unknown>[]): Promise<void> {
  const results = await Promise.allSettled(work)
  const failed = results.find((result) => result.status === 'rejected')
  if (failed !== undefined) throw failed.reason
}
