// Takes an instance back to what it was when a snapshot of it was taken. The snapshot stays as it is.
import type { CopyRequest } from '../../instances/contract.ts'
import type { Context } from '../context.ts'
import { reading } from './read.ts'

/** `ref` names the instance that the snapshot was taken of. The answer is the API's `Instance`. */
export async function restore (context: Context, ref: string, id: string, request: CopyRequest): Promise<unknown> {
  const instance = context.copies.find(ref)
  return await reading(context, id, async (snapshot) => await context.copies.restore(instance.id, snapshot.copy, context.files.of(snapshot), request))
}
