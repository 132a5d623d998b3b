// Makes a new instance of a copy, which stays as it is and may be used by others at the same time.
import type { Context } from '../context.ts'
import type { CopyFiles, CopyRequest, InstanceCopy } from '../contract.ts'
import type { LiveInstance } from '../live-instance.ts'
import { finishFork, gatherFork } from '../operations/fork.ts'
import { copyFiles } from '../operations/copy-instance.ts'
import { planFor } from './rules.ts'

/** Returns once the guest is awake, or could not be woken yet. */
export async function forkCopy (context: Context, copy: InstanceCopy, files: CopyFiles, request: CopyRequest & { readonly name: string }): Promise<LiveInstance> {
  const { target, withMemory, spec } = await planFor(context, 'fork', copy, request)
  const { image, imageDigest } = copy
  return await finishFork(context, await gatherFork(context, {
    name: request.name,
    image,
    imageDigest,
    spec,
    target,
    withMemory,
    async copy (to) {
      await copyFiles(context, files, to)
      return withMemory ? copy.memory : undefined
    }
  }))
}
