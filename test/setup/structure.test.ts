// The counts of `npm run structure`.
import { access, mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { circlesOf } from '../../setup/structure/circles.ts'
import { REMOVABLE } from '../../setup/structure/deleted.ts'
import { readSources } from '../../setup/structure/imports.ts'
import { FOLDERS, importersLeft, removeLeftovers, withDependents } from '../../setup/structure/without.ts'
import { packageRoot } from '../../core/package-root.ts'
import { testFolder } from '../helpers/folder.ts'
import { TESTS_WITHOUT } from './structure/tests-without.ts'

t.test('imports of types are told from those of values, and packages are left out', async (t) => {
  const root = testFolder(t)
  await mkdir(join(root, 'plugins', 'a'), { recursive: true })
  await writeFile(join(root, 'plugins', 'a', 'index.ts'), [
    "import { readFile } from 'node:fs/promises'",
    "import type { B } from '../../core/b.ts'",
    "import { type C } from './c.ts'",
    "import { d, type D } from './d.ts'",
    "export type { E } from './e.ts'",
    "export * from './f.ts'",
    ''
  ].join('\n'))
  const [source] = await readSources(root, ['core', 'plugins'])
  t.equal(source?.file, 'plugins/a/index.ts')
  t.equal(source?.lines, 6)
  t.strictSame(source?.imports.map(({ to, typeOnly }) => [to, typeOnly]), [
    ['core/b.ts', true], ['plugins/a/c.ts', true], ['plugins/a/d.ts', false], ['plugins/a/e.ts', true], ['plugins/a/f.ts', false]
  ])
})

t.test('a circle is found whole, and what only leads to it is no part of it', async (t) => {
  const paths = ['start>a', 'a>b', 'b>c', 'c>a', 'c>end', 'x>y', 'y>x']
  const imports = paths.map((path) => {
    const [from = '', to = ''] = path.split('>')
    return { from, to, typeOnly: false }
  })
  t.strictSame(circlesOf(imports), [['a', 'b', 'c'], ['x', 'y']])
})

t.test('what imports a plugin is told, but for tests that bear its name, which go with it', async (t) => {
  const source = (file: string, ...to: string[]) => ({ file, lines: 1, imports: to.map((path) => ({ from: file, to: path, typeOnly: true })) })
  const sources = [
    source('plugins/a/index.ts'), source('plugins/b/index.ts', 'plugins/a/index.ts'), source('test/plugins/a/app.ts', 'plugins/a/index.ts'),
    source('test/integration/a-far.test.ts', 'test/plugins/a/app.ts'), source('test/plugins/b/with-a.test.ts', 'plugins/a/index.ts'), source('test/plugins/b/a-side.test.ts', 'plugins/a/index.ts'), source('setup/main.ts', 'core/main.ts')
  ]
  t.strictSame(importersLeft(sources, ['a']), ['plugins/b/index.ts', 'test/plugins/b/a-side.test.ts'])
  t.strictSame(importersLeft(sources, ['b']), [])
})

t.test('nothing of this checkout that stays imports a plugin whose folder can be deleted', async (t) => {
  const sources = await readSources(packageRoot, FOLDERS)
  for (const plugin of REMOVABLE) t.strictSame(importersLeft(sources, await withDependents(plugin)), [], plugin)
})

t.test('who requires what a plugin provides goes with it', async (t) => {
  const gone = await withDependents('guest')
  t.ok(gone.includes('instances'))
  t.notOk(gone.includes('images'))
  t.strictSame(await withDependents('tracing'), ['tracing'])
})

t.test('a tree without a plugin whose process was killed goes with the next one', async (t) => {
  const cache = testFolder(t, { 'without-999999999-abc': { core: {} }, [`without-${process.pid}-def`]: {}, system: {} })
  await removeLeftovers(cache)
  t.strictSame((await readdir(cache)).sort(), ['system', `without-${process.pid}-def`])
})

t.test('each test that is run without a plugin stands where the list says', async (t) => {
  for (const name of TESTS_WITHOUT) await t.resolves(access(join(packageRoot, 'test', `${name}.test.ts`)), name)
})
