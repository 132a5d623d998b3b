// Which source a list of snapshots is asked for: `source_instance_id` takes what every path takes, also of an instance that is gone.
import { NotFound } from '../../core/errors/common.ts'
import { lookup, type Named } from '../../core/http/lookup.ts'
import type { SnapshotRepository } from './repository.ts'

/**
 * The id of the source that `ref` names: an id; else a living instance's name or the beginning of its id; else those of one that is gone and has snapshots.
 * @param findLiving throws not_found and ambiguous, as the service `instanceCopies` does
 * @returns undefined when there is none, of which no snapshot can be
 * @throws ambiguous
 */
export async function sourceOf (repository: Pick<SnapshotRepository, 'sourcesAlike'>, ref: string, findLiving: (ref: string) => Named): Promise<string | undefined> {
  const alike = await repository.sourcesAlike(ref)
  // Several rows of one source, should its name have changed.
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
