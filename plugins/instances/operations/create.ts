// Creates an instance: a row first, then its files, then its VM. Killed between any two steps, the row says `creating`,
// and the next start of the server removes all of it.
import { createUndo, type Undo } from '../../../core/undo.ts'
import type { ReadyImage } from '../../images/contract.ts'
import { identityOf, liveInstance, pathsIn, type Context } from '../context.ts'
import { makeFiles, removeFiles, syncFiles } from '../files.ts'
import type { LiveInstance } from '../live-instance.ts'
import { logOperation } from '../operations-log.ts'
import { imageHolder, type InstanceSpec } from '../record.ts'
import type { CreateInstance } from '../schemas.ts'
import { specOf } from '../validate/create.ts'
import { argvOf } from '../workload.ts'
import { attach } from './attach.ts'
import { allDone, insert } from './insert.ts'
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
