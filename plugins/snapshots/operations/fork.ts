// Makes a new instance of a snapshot, which stays as it is. The plugin instances decides what may be asked of which kind.
import type { ForkRequest, Source } from '../../instances/contract.ts'
import type { Context } from '../context.ts'
import type { SnapshotRecord } from '../record.ts'
import { reading } from './read.ts'

/** The answer is the API's `Instance`. */
export async function fork (context: Context, id: string, request: ForkRequest): Promise<unknown> {
  return await reading(context, id, async (snapshot) => await context.copies.fork(snapshot.copy, context.files.of(snapshot), { ...request, source: sourceOf(snapshot) }))
}

function sourceOf ({ id, name }: SnapshotRecord): Source {
  return { kind: 'snapshot', id, ...(name === null ? {} : { name }) }
}
