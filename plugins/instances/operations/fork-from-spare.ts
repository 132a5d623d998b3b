// Makes a fork of a spare VM, which was restored ahead on the copy that the fork is to be of.
import { pathsIn, type Context } from '../context.ts'
import { logOperation } from '../folder/operations-log.ts'
import { namingFullDisk } from '../host/disk-full.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { attach } from './attach.ts'
import { awaitAwake } from './awake.ts'
import { becomeInstance, type Became } from './become-instance.ts'
import type { ResolvedFork } from './fork.ts'
import { createSteps, type Steps } from './steps.ts'

/**
 * Undefined when there is no spare VM of that key, or none that can be used; nothing is left of it then. Otherwise it returns as any fork does.
 * @throws NameTaken, insufficient_resources, and what the parts throw
 */
export async function forkFromSpare (context: Context, key: string, fork: ResolvedFork): Promise<LiveInstance | undefined> {
  const steps = createSteps()
  const became = await claimOne(context, key, fork, steps).catch((error: unknown) => { throw namingFullDisk('fork', error) })
  if (became === undefined) return undefined
  const { instance, session } = became
  // Others may use the fork from the moment at which it is listed.
  return await context.locks.hold(instance.id, async () => {
    context.instances.add(instance)
    attach(context, instance, session)
    await awaitAwake(context, instance, session)
    steps.note('awake')
    await logOperation(pathsIn(context, instance.id).operations, `fork: from a spare VM: ${steps.text()}`, context.log)
    return instance
  })
}

async function claimOne (context: Context, key: string, { plan: { name, spec }, image }: ResolvedFork, steps: Steps): Promise<Became | undefined> {
  for (let spare = context.spares.take(key); spare !== undefined; spare = context.spares.take(key)) {
    const became = await becomeInstance(context, spare, { name, spec, image, guest: { origin: 'restored', newMachine: true }, steps })
    if (became !== undefined) return became
    steps.note('a spare VM that was of no use')
  }
  return undefined
}
