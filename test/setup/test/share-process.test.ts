// Which test files share a process.
import t from 'tap'
import type { TestFile } from '../../../setup/test/files.ts'
import { ownProcesses, shareProcesses } from '../../../setup/test/share-process.ts'
import { testFolder } from '../../helpers/folder.ts'

const file = (source: string): TestFile => ({ source, compiled: source })

t.test('files of a folder of in-process tests share, except those that ask for a process, and long ones', async (t) => {
  const texts = { 'core/a': '// A.\n', 'core/b': "// B.\n// Own process: it counts open files.\nimport t from 'tap'\n", 'core/c.long': '// C.\n', 'cli/d': '// D.\n', 'core/e': "t.test('// Own process: of another')\n" }
  const files = Object.keys(texts).map((name) => file(`test/${name}.test.ts`))
  const root = testFolder(t, {
    test: {
      core: { 'a.test.ts': texts['core/a'], 'b.test.ts': texts['core/b'], 'c.long.test.ts': texts['core/c.long'], 'e.test.ts': texts['core/e'] },
      cli: { 'd.test.ts': texts['cli/d'] }
    }
  })
  const own = await ownProcesses(root, files)
  t.strictSame([...own].map(({ source }) => source), ['test/core/b.test.ts', 'test/core/c.long.test.ts', 'test/cli/d.test.ts'])
})

t.test('a process has files of one folder, few and short ones, and every file has one process', async (t) => {
  const files = [...Array.from({ length: 30 }, (_, index) => file(`test/core/x/${index}.test.ts`)), file('test/core/y/0.test.ts'), file('test/core/y/own.test.ts'), file('test/core/y/slow.test.ts'), file('test/core/y/1.test.ts')]
  const own = new Set(files.filter(({ source }) => source.endsWith('own.test.ts')))
  const processes = shareProcesses(files, own, { 'test/core/y/slow.test.ts': 50, 'test/core/x/3.test.ts': 30 })
  t.strictSame(processes.flat().map(({ source }) => source).sort(), files.map(({ source }) => source).sort())
  t.ok(processes.every((shared) => shared.length <= 12 && new Set(shared.map(({ source }) => source.split('/')[2])).size === 1))
  t.strictSame(processes.filter((shared) => shared[0].source.includes('/y/')).map((shared) => shared.map(({ source }) => source)), [
    ['test/core/y/0.test.ts', 'test/core/y/1.test.ts'], ['test/core/y/own.test.ts'], ['test/core/y/slow.test.ts']
  ])
  t.ok(processes.length < 10)
})
