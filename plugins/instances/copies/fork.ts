// Makes a new instance of a copy, which stays as it is and may be used by others at the same time.
import type { Context } from '../context.ts'
import type { CopyFiles, ForkRequest, InstanceCopy } from '../contract.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { finishFork, gatherFork, resolveFork, type ResolvedFork } from '../operations/fork.ts'
import { forkFromSpare } from '../operations/fork-from-spare.ts'
import { copyFiles } from '../operations/copy-instance.ts'
import type { InstanceSpec } from '../model/record.ts'
import type { SpareSource } from '../spares/contract.ts'
import { checkHypervisor } from '../validate/plugins.ts'
import { withEnvironment } from './environment.ts'
import { planFor } from './rules.ts'
import { spareForksOf } from './spare-fork.ts'

/** Returns once the guest is awake, or could not be woken yet. */
export async function forkCopy (context: Context, copy: InstanceCopy, files: CopyFiles, request: ForkRequest): Promise<LiveInstance> {
  const { target, withMemory, spec } = await planFor(context, 'fork', copy, request)
  checkHypervisor(spec, spec.hypervisor, context)
  const { image, imageDigest, sourceId, sourceName } = copy
  const { source = { kind: 'instance', id: sourceId, name: sourceName } } = request
  const fork = await resolveFork(context, {
    name: request.name,
    caller: request.caller,
    image,
    imageDigest,
    spec: { ...withEnvironment(context, withPresentPolicy(context, copy, spec), request.env), ...(request.tags === undefined ? {} : { tags: request.tags }), source },
    target,
    withMemory,
    async copy (context, to) {
      await copyFiles(context, files, to)
      return withMemory ? copy.memory : undefined
    }
  })
  const spares = withMemory && target === 'Running' ? spareForksOf(context, copy, files, fork) : undefined
  return spares === undefined ? await makeFork(context, fork) : await forkOrSpare(context, fork, spares)
}

async function makeFork (context: Context, fork: ResolvedFork): Promise<LiveInstance> {
  return await finishFork(context, await gatherFork(context, fork))
}

async function forkOrSpare (context: Context, fork: ResolvedFork, spares: SpareSource): Promise<LiveInstance> {
  const [instance, isMet] = await context.spares.during(async (): Promise<[LiveInstance, boolean]> => {
    const spare = await forkFromSpare(context, spares.key, fork)
    return spare === undefined ? [await makeFork(context, fork), false] : [spare, true]
  })
  context.spares.note(spares.key, isMet)
  context.spares.want(spares)
  return instance
}

/** The spec with the policy that the source has now, if it still exists: a credential that was replaced since the copy was taken, perhaps because it was stolen, is not brought back. */
function withPresentPolicy ({ instances }: Context, { sourceId }: InstanceCopy, spec: InstanceSpec): InstanceSpec {
  const egress = instances.all().find(({ id }) => id === sourceId)?.record.spec.egress
  return egress === undefined ? spec : { ...spec, egress }
}
