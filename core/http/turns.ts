// Which requests that change one thing may run in parallel: all of them, except that nothing runs in parallel with a request that names the version that it has seen.

export interface Turns {
  /** A change of the thing that `ref` names: by a name, an id or the beginning of one; the empty text may mean any thing. Resolves once the change may be made, with the function that ends its turn. */
  change (kind: string, ref: string): Promise<() => void>
  /** A check and a change as one step: no other request changes the thing in between. Resolves once it may begin, with the function that ends its turn. */
  alone (kind: string, thing: Named): Promise<() => void>
}

/** What is known of a thing; without an id it may be any of its kind. */
export interface Named { readonly id?: string, readonly name?: string }

interface Turn {
  readonly kind: string
  readonly done: Promise<void>
  /** set for a request that must run alone */
  readonly thing?: Named
  /** set for a request that may run in parallel */
  readonly ref?: string
}

export function createTurns (): Turns {
  // In order of arrival. Each waits only for earlier ones: so there is no deadlock, and nobody waits for ever behind later ones.
  const turns = new Set<Turn>()
  const take = async (own: { readonly kind: string, readonly thing?: Named, readonly ref?: string }): Promise<() => void> => {
    let end = (): void => {}
    const turn: Turn = { ...own, done: new Promise((resolve) => { end = resolve }) }
    const before = [...turns].filter((other) => excludes(turn, other))
    turns.add(turn)
    await Promise.all(before.map(async ({ done }) => { await done }))
    return () => {
      turns.delete(turn)
      end()
    }
  }
  return {
    change: async (kind, ref) => await take({ kind, ref }),
    alone: async (kind, thing) => await take({ kind, thing })
  }
}

function excludes (one: Turn, other: Turn): boolean {
  if (one.kind !== other.kind) return false
  if (one.thing === undefined) return other.thing !== undefined && mayMean(other.thing, one.ref ?? '')
  return other.thing === undefined ? mayMean(one.thing, other.ref ?? '') : one.thing.id === other.thing.id
}

function mayMean ({ id, name }: Named, ref: string): boolean {
  return id === undefined || id.startsWith(ref) || name === ref
}
