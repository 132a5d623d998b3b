// The counts of `npm run structure`.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { circlesOf } from '../../setup/structure/circles.ts'
import { readSources } from '../../setup/structure/imports.ts'

t.test('imports of types are told from those of values, and packages are left out', async (t) => {
  const root = t.testdir()
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
