// The tree of what was made of what, and the places of sliders, as the page has them.
import t from 'tap'
import { pageModule } from './page-module.ts'

interface TreeNode { readonly kind: string, readonly key: string, readonly lost?: string, readonly users?: number, readonly images?: number, readonly title?: string, readonly children: readonly TreeNode[] }
interface Range { readonly kind: 'count' | 'bytes', readonly min: number, readonly max: number, readonly text: string }
interface Nodes { rootsOf (facts: Readonly<Record<string, readonly unknown[]>>): readonly TreeNode[] }
interface Ranges {
  stopsOf (range: Range): readonly number[]
  textOf (range: Range, value: number): string
  valueOf (range: Range, typed: string): number | undefined
  placeOf (stops: readonly number[], value: number): number
}

const MB = 2 ** 20
const GB = 2 ** 30
const size = (min: number, max: number): Range => ({ kind: 'bytes', min, max, text: '' })

t.test('forks stand below what they were made of, instances of a template below it, and what has lost its source at its image', async (t) => {
  const { rootsOf } = await pageModule<Nodes>(t, 'pages/family/nodes.ts')
  const instance = (id: string, image: string, source?: unknown): unknown => ({ id, name: id, image, source })
  const roots = rootsOf({
    images: [{ name: 'one', size_bytes: 1 }, { name: 'two', size_bytes: 1 }],
    instances: [
      instance('booted', 'one', { kind: 'image', id: 'sha256:1' }), instance('old', 'one'), instance('cloned', 'one', { kind: 'template', id: 't' }), instance('other', 'two', { kind: 'template', id: 't' }),
      instance('fork', 'one', { kind: 'instance', id: 'booted', name: 'booted' }), instance('of-snapshot', 'one', { kind: 'snapshot', id: 's', name: 'kept' }), instance('lost', 'one', { kind: 'snapshot', id: 'gone', name: 'old-one' }),
      instance('nameless', 'three', { kind: 'image', id: 'sha256:3' })
    ],
    snapshots: [{ id: 's', source_instance_id: 'fork' }, { id: 'orphan', source_instance_id: 'gone' }],
    templates: [{ id: 't' }, { id: 'idle' }]
  })
  t.same(outline(roots), [
    'image one', ' template one t', '  instance cloned', ' instance booted', '  instance fork', '   snapshot s', '    instance of-snapshot', ' instance old', ' instance lost',
    'image two', ' template two t', '  instance other', 'image three', ' instance nameless', 'group  templates', ' template idle', 'group  orphans', ' snapshot orphan'
  ])
  t.match(roots[0], { users: 6, children: [{ images: 2 }, {}, {}, { lost: 'snapshot old-one' }] })
  t.same(outline(rootsOf({ images: [], instances: [], snapshots: [], templates: [] })), [])
})

t.test('a slider has round places between the least and the most that can be had', async (t) => {
  const { stopsOf, textOf, valueOf, placeOf } = await pageModule<Ranges>(t, 'forms/range.ts')
  const range = size(64 * MB, 2.7 * GB)
  const stops = stopsOf(range)
  t.same(stops.map((stop) => textOf(range, stop)), ['64MB', '96MB', '128MB', '192MB', '256MB', '384MB', '512MB', '768MB', '1GB', '1536MB', '2GB'])
  t.same(stopsOf(size(64 * MB, 10 * MB)), [], 'nothing can be had')
  t.same(stopsOf(size(64 * MB, Infinity)), [], 'without a limit there is no slider')
  t.same(stopsOf(size(64 * MB, 64 * MB)), [64 * MB])
  t.same(stopsOf({ kind: 'count', min: 1, max: 3.9, text: '' }), [1, 2, 3])
  for (const [typed, value] of [['1.5GB', 1.5 * GB], ['512 mb', 512 * MB], ['2G', 2 * GB], ['1GiB', GB], ['4096', 4096], ['', undefined], ['x', undefined], ['1e9', undefined], ['-1GB', undefined], ['9'.repeat(400), undefined]] as const) t.equal(valueOf(range, typed), value, typed)
  t.equal(valueOf({ kind: 'count', min: 1, max: 3, text: '' }, '2G'), undefined)
  t.equal(placeOf(stops, 100 * MB), 1)
  t.equal(placeOf(stops, 1), 0)
  t.equal(placeOf(stops, 900 * GB), stops.length - 1)
})

function outline (nodes: readonly TreeNode[], depth = 0): string[] {
  return nodes.flatMap(({ kind, key, children }) => [`${' '.repeat(depth)}${kind} ${key}`, ...outline(children, depth + 1)])
}
