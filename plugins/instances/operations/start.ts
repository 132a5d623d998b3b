// Starts a stopped instance again: another VM on the same disk.
import type { Vm } from '../../../core/library/hypervisor.ts'
import { InvalidState } from '../../../core/errors/common.ts'
import { createUndo } from '../../../core/undo.ts'
import type { ReadyImage } from '../../images/contract.ts'
import { identityOf, pathsIn, type Context } from '../context.ts'
import { ImageMissing } from '../errors.ts'
import { prepareRun } from '../folder/files.ts'
import { withKernelHeaders } from '../guest/kernel-headers.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { admitParts, disconnectParts } from '../parts/all.ts'
import type { InstanceRecord, InstanceSpec } from '../model/record.ts'
import { startedState } from '../restart/policy.ts'
import type { Asked, StartOverrides } from '../model/request.ts'
import { requireState } from '../model/state.ts'
import { requireWorkload } from '../guest/workload.ts'
import { requireUser } from '../users/require.ts'
import { attach } from './attach.ts'
import { cloneOrLaunch, prepareVm } from './clone.ts'
import { converse } from './launch.ts'

/**
 * Launches the VM and stores it together with the overrides, which hold for later starts too. After a crash before that
 * the instance is Stopped as it was, and the next start of the server ends the VM, which no row knows.
 */
export async function start (context: Context, instance: LiveInstance, overrides: StartOverrides, { by = 'hand', caller }: Asked & { readonly by?: 'hand' | 'policy' } = {}): Promise<void> {
  requireState('start', instance.name, instance.derived)
  if (instance.record.status !== 'active') throw InvalidState(`start: instance ${instance.name} is being deleted`)
  const image = await context.images.byDigest(instance.record.imageDigest)
  if (image === undefined) throw ImageMissing(instance.record.image)
  await requireUser(context, instance)
  const record: InstanceRecord = { ...instance.record, spec: await withKernelHeaders(context, withOverrides(instance.record.spec, overrides)) }
  requireWorkload(record, image, context.guest)
  const undo = createUndo()
  try {
    // Before the step that it undoes, which may have been done although its answer was lost.
    undo.add(async () => { await disconnectParts(context, record) })
    await admitParts(context, record)
    const turn = await context.starts.turn(caller)
    undo.add(() => { turn.end() })
    const { vm } = await bringUp(context, record, image)
    const startedAt = Date.now()
    // A fork may be started for the first time.
    const session = converse(context, record, { image, vm, origin: 'launched', newMachine: record.startedAt === null })
    turn.endWith(session)
    undo.add(async () => {
      await vm.kill()
      session.release()
    })
    await instance.save(({ life }) => ({ spec: record.spec, handle: vm.handle, startedAt, runningAt: null, stoppedAt: null, exit: null, life: { ...life, restart: startedState(life.restart, by) } }))
    attach(context, instance, session)
    undo.drop()
  } catch (error) {
    for (const failure of await undo.run()) context.log.error({ err: failure }, 'a step of a failed start could not be taken back')
    throw error
  }
}

/** Starts a clone of a template, if there is one. No template is made for it: its shape had one when the instance was created. */
async function bringUp (context: Context, record: InstanceRecord, image: ReadyImage): Promise<{ readonly vm: Vm }> {
  const shape = await context.templates.shapeOf(record.spec)
  const prepared = await prepareVm(context, record, shape, [prepareRun(pathsIn(context, record.id), identityOf(context, record))])
  return await cloneOrLaunch(context, record, image, prepared)
}

function withOverrides (spec: InstanceSpec, { cmd, entrypoint }: StartOverrides): InstanceSpec {
  return {
    ...spec,
    ...(cmd === undefined ? {} : { cmd }),
    ...(entrypoint === undefined ? {} : { entrypoint })
  }
}
