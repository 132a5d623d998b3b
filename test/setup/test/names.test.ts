// The list of test names, which shows whether a change of the suite has lost one.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { listTests, testNames } from '../../../setup/test/names.ts'
import { testFolder } from '../../helpers/folder.ts'

t.test('every way to make a test gives a name', async (t) => {
  t.strictSame(testNames('a.test.ts', `
    t.test('plain', async () => {})
    await t.test(\`of \${kind} and \${size}\`, { timeout: 1 }, run)
    eachDatabase(t, 'on each database', run)
    const tests = { 'in a table': inATable, notATest: 1, 'nor-this': other }
    const table = [{ name: 'as a row', code: 1 }, { name: 'word' }]
    other.method('not a test')
    t.test(computed, run)
  `), ['plain', 'of ${…} and ${…}', 'on each database', 'in a table', 'as a row'])
})

t.test('a test keeps its line when its file moves to the other tier', async (t) => {
  const root = testFolder(t)
  await mkdir(join(root, 'test/deep'), { recursive: true })
  await writeFile(join(root, 'test/deep/a.long.test.ts'), 't.test(\'one\', run)')
  await writeFile(join(root, 'test/deep/b.test.ts'), 't.test(\'two\', run)')
  t.strictSame(await listTests(root), ['test/deep/a: one', 'test/deep/b: two'])
})
