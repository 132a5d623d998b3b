// Computes the order in which plugins start, and reports everything that prevents one. Pure: it knows names only and imports nothing.

/** The facts about one plugin that the graph needs. */
export interface GraphNode {
  readonly id: string
  readonly provides: readonly string[]
  readonly requires: readonly string[]
  readonly optional?: readonly string[]
  readonly fills?: { readonly slot: string, readonly name: string }
}

export interface GraphPlan {
  /** ids in start order; empty when there are problems */
  readonly order: readonly string[]
  /** full sentences, one for each problem */
  readonly problems: readonly string[]
}

interface Edge { readonly to: string, readonly key: string }
type Edges = ReadonlyMap<string, readonly Edge[]>

/**
 * Orders plugins so that each starts after those that it requires, and after those that it optionally uses when they are present;
 * all fillers of a slot come before any plugin that requires the slot. Ties are broken by id, so every boot is the same.
 * @param coreKeys the keys that core itself provides
 * @param disabled ids of plugins that are turned off, to be named when one of their keys is missing
 */
export function planGraph (nodes: readonly GraphNode[], coreKeys: readonly string[], disabled: readonly string[] = []): GraphPlan {
  const sorted = [...nodes].sort((a, b) => compare(a.id, b.id))
  const core = new Set(coreKeys)
  const edges = edgesOf(sorted)
  const { order, rest } = sortTopologically(sorted.map(node => node.id), edges)
  const problems = [
    ...duplicateIds(sorted),
    ...duplicateProviders(sorted, core),
    ...duplicateFillers(sorted, core),
    ...missingProviders(sorted, core, disabled),
    ...cycles(rest, edges)
  ]
  return { order: problems.length === 0 ? order : [], problems }
}

/** The plugins that supply a key, or that fill a slot of this name. */
export function suppliersOf<Node extends GraphNode> (key: string, nodes: readonly Node[]): readonly Node[] {
  return nodes.filter(node => node.provides.includes(key) || node.fills?.slot === key)
}

function compare (a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function edgesOf (nodes: readonly GraphNode[]): Edges {
  return new Map(nodes.map(node => {
    const keys = [...new Set([...node.requires, ...node.optional ?? []])]
    return [node.id, keys.flatMap(key => suppliersOf(key, nodes).map(supplier => ({ to: supplier.id, key })))]
  }))
}

/** `ids` are sorted, so the first ready one is always the smallest. */
function sortTopologically (ids: readonly string[], edges: Edges): { order: string[], rest: string[] } {
  const order: string[] = []
  let rest = [...ids]
  for (;;) {
    const waiting = new Set(rest)
    const next = rest.find(id => edges.get(id)?.every(edge => !waiting.has(edge.to)))
    if (next === undefined) return { order, rest }
    order.push(next)
    rest = rest.filter(id => id !== next)
  }
}

/** Finds one cycle among `ids`, removes its members, and repeats until none is left. */
function cycles (ids: readonly string[], edges: Edges): string[] {
  const left = new Set(ids)
  const found: string[] = []
  for (const start of ids) {
    const path = left.has(start) ? findCycle(start, edges, left) : undefined
    if (path === undefined) continue
    const [first] = path
    found.push(`plugins need each other in a circle: ${path.map(step => `${step.id} -(${step.key})-> `).join('')}${first?.id ?? ''}`)
    for (const step of path) left.delete(step.id)
  }
  return found
}

interface Step { readonly id: string, readonly key: string }

/** Depth first; a plugin that is met again on the current path closes a cycle, which is listed from its smallest id. */
function findCycle (start: string, edges: Edges, within: ReadonlySet<string>): Step[] | undefined {
  const done = new Set<string>()
  const path: Step[] = []
  const visit = (id: string): Step[] | undefined => {
    const at = path.findIndex(step => step.id === id)
    if (at >= 0) return path.slice(at)
    if (done.has(id) || !within.has(id)) return undefined
    for (const edge of edges.get(id) ?? []) {
      path.push({ id, key: edge.key })
      const cycle = visit(edge.to)
      if (cycle !== undefined) return cycle
      path.pop()
    }
    done.add(id)
    return undefined
  }
  const cycle = visit(start)
  if (cycle === undefined) return undefined
  const smallest = cycle.reduce((best, step, index) => compare(step.id, cycle[best]?.id ?? step.id) < 0 ? index : best, 0)
  return [...cycle.slice(smallest), ...cycle.slice(0, smallest)]
}

function duplicateIds (nodes: readonly GraphNode[]): string[] {
  return repeated(nodes.map(node => [node.id, node.id])).map(([id]) => `two plugins have the id ${id}`)
}

function duplicateProviders (nodes: readonly GraphNode[], core: ReadonlySet<string>): string[] {
  const all = nodes.flatMap(node => node.provides.map((key): [string, string] => [key, node.id]))
  return repeated([...[...core].map((key): [string, string] => [key, 'core']), ...all])
    .map(([key, ids]) => `the key "${key}" is provided more than once: by ${ids.join(' and ')}`)
}

function duplicateFillers (nodes: readonly GraphNode[], core: ReadonlySet<string>): string[] {
  const fillers = nodes.flatMap(node => node.fills === undefined ? [] : [{ id: node.id, ...node.fills }])
  const provided = new Set([...core, ...nodes.flatMap(node => node.provides)])
  const twice = repeated(fillers.map(({ id, slot, name }) => [`${slot}\0${name}`, id])).map(([place, ids]) => {
    const [slot, name] = place.split('\0')
    return `the slot "${slot}" is filled twice under the name "${name}": by ${ids.join(' and ')}`
  })
  const clashes = [...new Set(fillers.map(filler => filler.slot))].filter(slot => provided.has(slot))
    .map(slot => `"${slot}" is both a key that is provided and a slot that is filled`)
  return [...twice, ...clashes]
}

function missingProviders (nodes: readonly GraphNode[], core: ReadonlySet<string>, disabled: readonly string[]): string[] {
  const hint = disabled.length === 0 ? '' : ` (turned off: ${disabled.join(', ')})`
  return nodes.flatMap(node => [...new Set(node.requires)]
    .filter(key => !core.has(key) && suppliersOf(key, nodes).length === 0)
    .map(key => `plugin ${node.id} requires "${key}", which no enabled plugin provides${hint}`))
}

/** Groups pairs by key and keeps the keys that occur more than once. */
function repeated (pairs: readonly (readonly [string, string])[]): [string, string[]][] {
  const groups = new Map<string, string[]>()
  for (const [key, value] of pairs) groups.set(key, [...groups.get(key) ?? [], value])
  return [...groups].filter(([, values]) => values.length > 1)
}
