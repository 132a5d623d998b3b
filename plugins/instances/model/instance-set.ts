// All instances of this host, in memory, in the order of their creation. Reads never touch the database.
import { lookup } from '../../../core/http/lookup.ts'
import { NotFound } from '../../../core/errors/common.ts'
import type { LiveInstance } from './live-instance.ts'

export interface InstanceSet {
  add (instance: LiveInstance): void
  remove (instance: LiveInstance): void
  /** By id, exact name, or an id's beginning. @throws NotFound or Ambiguous */
  find (ref: string): LiveInstance
  /** By id. @throws NotFound */
  get (id: string): LiveInstance
  /** By id. */
  known (id: string): LiveInstance | undefined
  /** Oldest first. */
  all (): readonly LiveInstance[]
}

export function createInstanceSet (): InstanceSet {
  const byId = new Map<string, LiveInstance>()
  const byName = new Map<string, LiveInstance>()
  let ordered: readonly LiveInstance[] | undefined
  return {
    add (instance) {
      byId.set(instance.id, instance)
      byName.set(instance.name, instance)
      ordered = undefined
    },
    remove (instance) {
      byId.delete(instance.id)
      // A younger instance may have taken the name by now.
      if (byName.get(instance.name) === instance) byName.delete(instance.name)
      ordered = undefined
    },
    find (ref) {
      return byId.get(ref) ?? byName.get(ref) ?? lookup(byId, ref, { what: 'instance', byName: true })
    },
    get (id) {
      const instance = byId.get(id)
      if (instance === undefined) throw NotFound('instance', id)
      return instance
    },
    known: (id) => byId.get(id),
    all () {
      ordered ??= [...byId.values()]
      return ordered
    }
  }
}
