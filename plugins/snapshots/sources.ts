// The source that a list of snapshots is asked for. `source_instance_id` takes an id, a name or the beginning of an id, as paths do, and also those of a deleted instance.
import { NotFound } from '../../core/errors/common.ts'
import { lookup, type Named } from '../../core/http/lookup.ts'
import type { SnapshotRepository } from './repository.ts'

/**
 * The id of the source that `ref` names: an id; else the name or the beginning of the id of a living instance; else that of a deleted one with snapshots.
 * @param findLiving throws not_found and ambiguous, as the service `instanceCopies` does
 * @returns undefined when there is none; no snapshot can be of such a source
 * @throws ambiguous
 */
export async function sourceOf (repository: Pick<SnapshotRepository, 'sourcesAlike'>, ref: string, findLiving: (ref: string) => Named): Promise<string | undefined> {
  const alike = await repository.sourcesAlike(ref)
  // There may be several rows of one source, if its name has changed.
  const gone = new Map(alike.map((source) => [source.id, source]))
  if (gone.has(ref)) return ref
  return unlessUnknown(() => findLiving(ref)) ?? unlessUnknown(() => lookup(gone, ref, { what: 'instance', byName: true }))
}

function unlessUnknown (find: () => Named): string | undefined {
  try {
    return find().id
  } catch (error) {
    if (NotFound.is(error)) return undefined
    throw error
  }
}
