// Finds what a path parameter names: the item with that id, else with that name, else the only one whose id begins so.
import { Ambiguous, NotFound } from '../errors/common.ts'

export interface Named { readonly id: string, readonly name?: string | null }

export interface LookupOptions {
  /** for messages: `instance` */
  readonly what: string
  /** whether a name is accepted */
  readonly byName?: boolean
}

/**
 * The item that `ref` names: by its id, else its name, else the beginning of its id, since clients' lists show 12 characters of an id.
 * Given a map by id, the usual case needs no search.
 * @throws NotFound, or Ambiguous when several items match
 */
export function lookup<T extends Named> (items: readonly T[] | ReadonlyMap<string, T>, ref: string, options: LookupOptions): T {
  const byId = 'get' in items ? items.get(ref) : items.find((item) => item.id === ref)
  if (byId !== undefined) return byId
  const all: readonly T[] = [...items.values()]
  if (options.byName === true) {
    const named = single(all.filter((item) => item.name === ref), ref, options)
    if (named !== undefined) return named
  }
  if (ref !== '') {
    const prefixed = single(all.filter((item) => item.id.startsWith(ref)), ref, options)
    if (prefixed !== undefined) return prefixed
  }
  throw NotFound(options.what, ref)
}

/** Stored items that `rowsAlike` of core/db/page.ts can look for. */
export interface Stored<T> { alike (text: string): Promise<readonly T[]> }

/** The same for stored items: only the matching ones are read. */
export async function lookupStored<T extends Named> (store: Stored<T>, ref: string, options: LookupOptions): Promise<T> {
  return lookup(await store.alike(ref), ref, options)
}

function single<T> (found: readonly T[], ref: string, options: LookupOptions): T | undefined {
  if (found.length > 1) throw Ambiguous(options.what, ref)
  return found[0]
}
