// The start order of plugins, and every report about a graph that has none.
import t from 'tap'
import { planGraph, type GraphNode } from '../../../core/plugins/graph.ts'

const node = (id: string, parts: Partial<GraphNode> = {}): GraphNode => ({ id, provides: [], requires: [], ...parts })

t.test('a plugin starts after what it requires, however they are listed', async (t) => {
  const plan = planGraph([
    node('a', { requires: ['y', 'log'] }),
    node('b', { provides: ['x'] }),
    node('c', { provides: ['y'], requires: ['x'] })
  ], ['log'])
  t.strictSame(plan, { order: ['b', 'c', 'a'], problems: [] })
})

t.test('ties are broken by id, at each step', async (t) => {
  const plan = planGraph([node('d'), node('b', { requires: ['z'] }), node('a', { provides: ['z'], requires: ['w'] }), node('c', { provides: ['w'] })], [])
  t.strictSame(plan.order, ['c', 'a', 'b', 'd'])
})

t.test('an optional key orders when it is provided and is no problem when it is not', async (t) => {
  const user = node('a', { optional: ['x'] })
  t.strictSame(planGraph([user, node('b', { provides: ['x'] })], []).order, ['b', 'a'])
  t.strictSame(planGraph([user], []), { order: ['a'], problems: [] })
})

t.test('all fillers of a slot start before any plugin that requires the slot', async (t) => {
  const plan = planGraph([
    node('instances', { requires: ['hypervisors'] }),
    node('zz-driver', { fills: { slot: 'hypervisors', name: 'zz' }, requires: ['late'] }),
    node('qemu', { fills: { slot: 'hypervisors', name: 'qemu' } }),
    node('zzz', { provides: ['late'] })
  ], [])
  t.strictSame(plan, { order: ['qemu', 'zzz', 'zz-driver', 'instances'], problems: [] })
})

t.test('a cycle is printed as a path with the keys that close it, from its smallest id', async (t) => {
  const plan = planGraph([
    node('c', { provides: ['z'], requires: ['x'] }),
    node('a', { provides: ['x'], requires: ['y'] }),
    node('b', { provides: ['y'], requires: ['z'] }),
    node('d', { requires: ['x'] })
  ], [])
  t.strictSame(plan, { order: [], problems: ['plugins need each other in a circle: a -(y)-> b -(z)-> c -(x)-> a'] })
})

t.test('a cycle through an optional key or a slot is a cycle too', async (t) => {
  const plan = planGraph([
    node('a', { provides: ['x'], optional: ['y'] }),
    node('b', { provides: ['y'], requires: ['x'] }),
    node('c', { fills: { slot: 's', name: 'c' }, requires: ['w'] }),
    node('d', { provides: ['w'], requires: ['s'] })
  ], [])
  t.strictSame(plan.problems, [
    'plugins need each other in a circle: a -(y)-> b -(x)-> a',
    'plugins need each other in a circle: c -(w)-> d -(s)-> c'
  ])
})

t.test('a plugin that requires its own key is a cycle of one', async (t) => {
  t.strictSame(planGraph([node('a', { provides: ['x'], requires: ['x'] })], []).problems, ['plugins need each other in a circle: a -(x)-> a'])
})

t.test('all problems are reported at once', async (t) => {
  const plan = planGraph([
    node('a', { provides: ['x', 'log'], requires: ['nowhere', 'slot'] }),
    node('b', { provides: ['x'] }),
    node('c', { provides: ['p'], requires: ['q'] }),
    node('d', { provides: ['q'], requires: ['p'] }),
    node('e', { fills: { slot: 's', name: 'one' } }),
    node('f', { fills: { slot: 's', name: 'one' } }),
    node('g', { fills: { slot: 'q', name: 'g' } })
  ], ['log'])
  t.strictSame(plan.order, [])
  t.strictSame([...plan.problems].sort(), [
    '"q" is both a key that is provided and a slot that is filled',
    'plugin a requires "nowhere", which no enabled plugin provides',
    'plugin a requires "slot", which no enabled plugin provides',
    'plugins need each other in a circle: c -(q)-> d -(p)-> c',
    'the key "log" is provided more than once: by core and a',
    'the key "x" is provided more than once: by a and b',
    'the slot "s" is filled twice under the name "one": by e and f'
  ])
})

t.test('two plugins of one id are refused', async (t) => {
  t.strictSame(planGraph([node('a'), node('a')], []).problems, ['two plugins have the id a'])
})
