// Makes a machine of a snapshot again: a new one, or its source as it was. The snapshot stays as it is.
import { NotFound } from '../../../core/errors/common.ts'
import type { CopyRequest, ForkRequest } from '../../instances/contract.ts'
import type { Context } from '../context.ts'
import type { SnapshotWithCopy } from '../record.ts'

/** What may be asked of which kind of snapshot is the affair of the plugin instances. */
export interface Target {
  readonly target_hypervisor?: string
  readonly target_state?: 'Stopped' | 'Standby' | 'Running'
}

/** A new instance; the answer is the API's `Instance`. */
export async function fork (context: Context, id: string, { name, tags, env, ...target }: Target & Pick<ForkRequest, 'name' | 'tags' | 'env'>): Promise<unknown> {
  return await reading(context, id, async (snapshot) => {
    return await context.copies.fork(snapshot.copy, context.files.of(snapshot), { name, ...requestOf(target), ...(tags === undefined ? {} : { tags }), ...(env === undefined ? {} : { env }) })
  })
}

/** Takes the instance `ref` back to the snapshot, which must be one of it; the answer is the API's `Instance`. */
export async function restore (context: Context, ref: string, id: string, target: Target): Promise<unknown> {
  const instance = context.copies.find(ref)
  return await reading(context, id, async (snapshot) => {
    return await context.copies.restore(instance.id, snapshot.copy, context.files.of(snapshot), requestOf(target))
  })
}

/** Others may read it too; who wants to change or remove it waits. */
async function reading<T> ({ locks, repository }: Context, id: string, work: (snapshot: SnapshotWithCopy) => Promise<T>): Promise<T> {
  return await locks.share(id, async () => {
    const snapshot = await repository.withCopy(id)
    if (snapshot === undefined) throw NotFound('snapshot', id)
    return await work(snapshot)
  })
}

function requestOf ({ target_hypervisor: hypervisor, target_state: targetState }: Target): CopyRequest {
  return { ...(hypervisor === undefined ? {} : { hypervisor }), ...(targetState === undefined ? {} : { targetState }) }
}
