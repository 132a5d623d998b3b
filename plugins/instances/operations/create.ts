// Creates an instance, from a spare VM if there is one, else with a VM of its own: a row first, then its files, then its VM. Killed between any two
// steps, the row says `creating`, and the next start of the server removes all of it.
import type { Vm } from '../../../core/library/hypervisor.ts'
import { createUndo, type Undo } from '../../../core/undo.ts'
import type { ReadyImage } from '../../images/contract.ts'
import { identityOf, liveInstance, pathsIn, type Context } from '../context.ts'
import { makeFiles, makeFolder, removeFiles, syncFiles } from '../folder/files.ts'
import { withKernelHeaders } from '../guest/kernel-headers.ts'
import { requireDisk } from '../host/disk-full.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import { logOperation } from '../folder/operations-log.ts'
import { resolveParts } from '../parts/all.ts'
import { imageHolder, type InstanceRecord, type Source } from '../model/record.ts'
import type { InstanceRequest } from '../model/request.ts'
import type { CreateWay } from '../templates/metrics.ts'
import type { Shape } from '../templates/contract.ts'
import { specOf } from '../validate/create.ts'
import { makeVolumeOverlays } from '../volumes/files.ts'
import { requireWorkload } from '../guest/workload.ts'
import { attach } from './attach.ts'
import { cloneOrLaunch, prepareVm, type Prepared } from './clone.ts'
import { createFromSpare } from './create-from-spare.ts'
import { allDone, insert } from './insert.ts'
import { converse, driverOf, requireAvailable } from './launch.ts'
import { lifeOf } from '../life/begin.ts'
import { watchLife } from '../life/watch.ts'
import type { Creation, Made } from './made.ts'
import { releaseImage } from './release-image.ts'
import { createSteps } from './steps.ts'

/**
 * Returns once the VM is launched; its guest may still be booting.
 * @param worker the plugin that it works for
 */
export async function create (context: Context, request: InstanceRequest, worker?: string): Promise<LiveInstance> {
  const wanted = { ...specOf(request, context.settings, context), ...(worker === undefined ? {} : { worker }) }
  await requireAvailable(context, 'hypervisor', driverOf(context, { spec: wanted }))
  const asked = await resolveParts(context, wanted)
  const image = await context.images.require(request.image, context.settings.imageWaitMs)
  requireWorkload({ name: request.name, spec: asked }, image, context.guest)
  const spec = await withKernelHeaders(context, asked)
  const shape = await context.templates.shapeOf(spec)
  await requireDisk(context, 'create')
  const { instance, way } = await context.spares.during(async () => await context.metrics.timed('create', async () => await make(context, { ...request, spec, image, shape, steps: createSteps() })))
  if (shape !== undefined) context.templates.want(shape, spec.overlayBytes, way)
  return instance
}

async function make (context: Context, creation: Creation): Promise<{ readonly instance: LiveInstance, readonly way: CreateWay }> {
  const { instance, session, way } = await createFromSpare(context, creation) ?? await createAnew(context, creation)
  context.instances.add(instance)
  attach(context, instance, session)
  watchLife(context, instance)
  context.ways.made(way)
  await logOperation(pathsIn(context, instance.id).operations, `create: ${WAYS[way]}: ${creation.steps.text()}`, context.log)
  return { instance, way }
}

const WAYS: Readonly<Record<CreateWay, string>> = { spare: 'from a spare VM', clone: 'from a template', boot: 'by a boot' }

async function createAnew (context: Context, creation: Creation): Promise<Made> {
  const undo = createUndo()
  try {
    const made = await build(context, creation, undo)
    undo.drop()
    return made
  } catch (error) {
    const failures = await undo.run()
    for (const failure of failures) context.log.error({ err: failure }, 'a step of a failed create could not be taken back')
    throw error
  }
}

async function build (context: Context, { name, spec, caller, image, shape, steps }: Creation, undo: Undo): Promise<Made> {
  const record = await insert(context, { name, spec, image, purpose: 'running' }, undo)
  steps.note('row')
  const paths = pathsIn(context, record.id)
  undo.add(async () => { await releaseImage(context, image.digest, record.id) })
  undo.add(async () => { await removeFiles(paths) })
  const turn = await context.starts.turn(caller)
  undo.add(() => { turn.end() })
  steps.note('turn')
  await makeFolder(paths)
  const prepared = await gather(context, record, image, shape)
  steps.note('files')
  const start = async (): Promise<{ readonly vm: Vm, readonly way: CreateWay, readonly session: GuestSession, readonly startedAt: number }> => {
    const { vm, way } = await cloneOrLaunch(context, record, image, prepared)
    const startedAt = Date.now()
    const session = converse(context, record, { image, vm, origin: 'launched' })
    turn.endWith(session)
    undo.add(async () => {
      await vm.kill()
      session.release()
    })
    steps.note('VM')
    return { vm, way, session, startedAt }
  }
  const starting = start()
  await allDone([starting, syncFiles(paths)])
  const { vm, way, session, startedAt } = await starting
  steps.note('sync')
  const instance = liveInstance(context, record)
  const source: Source = way === 'clone' && shape !== undefined ? { kind: 'template', id: shape.key } : { kind: 'image', id: image.digest, name: image.name }
  await instance.save({ status: 'active', handle: vm.handle, startedAt, life: lifeOf(spec), spec: { ...instance.record.spec, source } })
  steps.note('stored')
  return { instance, session, way }
}

/** Makes everything that the VM needs. */
async function gather (context: Context, record: InstanceRecord, image: ReadyImage, shape: Shape | undefined): Promise<Prepared> {
  return await prepareVm(context, record, shape, [
    makeFiles(pathsIn(context, record.id), record.spec.overlayBytes, identityOf(context, record), context.commands),
    makeVolumeOverlays(context, record),
    context.images.hold(image.digest, imageHolder(record.id)),
    context.guest.system()
  ])
}
