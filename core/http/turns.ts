// Which requests that change one thing go beside one another: all of them, but nothing beside one that names the version that it has seen.

export interface Turns {
  /** A change of what is called `ref`: a name, an id or its beginning, of which all things have the empty one. Resolves, once it may be made, with what ends its turn. */
  change (kind: string, ref: string): Promise<() => void>
  /** A look and a change that are one step: nobody else changes the thing in between. Resolves, once it may begin, with what ends its turn. */
  alone (kind: string, thing: Named): Promise<() => void>
}

/** What is known of a thing; without an id any of its kind may be meant. */
export interface Named { readonly id?: string, readonly name?: string }

interface Turn {
  readonly kind: string
  readonly done: Promise<void>
  /** of one that must be alone */
  readonly thing?: Named
  /** of one that need not */
  readonly ref?: string
}

export function createTurns (): Turns {
  // In the order in which they came, in which each waits for those before it alone: nobody waits in a circle, or for ever behind those who came later.
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
