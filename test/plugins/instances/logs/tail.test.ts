// The last lines of a file are found from its end.
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { tailStart } from '../../../../plugins/instances/logs/tail.ts'
import { testFolder } from '../../../helpers/folder.ts'

const long = 'z'.repeat(100_000)
const table: readonly [content: string, wanted: number, rest: string, lines: number][] = [
  ['', 10, '', 0],
  ['a\nb\nc\n', 0, '', 0],
  ['a\nb\nc\n', 1, 'c\n', 1],
  ['a\nb\nc\n', 2, 'b\nc\n', 2],
  ['a\nb\nc\n', 3, 'a\nb\nc\n', 3],
  ['a\nb\nc\n', 10, 'a\nb\nc\n', 3],
  ['a\nb\nc', 1, 'c', 1],
  ['a\nb\nc', 2, 'b\nc', 2],
  ['\n\n\n', 2, '\n\n', 2],
  ['\n', 1, '\n', 1],
  ['x', 1, 'x', 1],
  [`a\n${long}\n${long}\n`, 2, `${long}\n${long}\n`, 2],
  [`${long}${long}`, 1, `${long}${long}`, 1]
]

t.test('the tail begins at the right byte', async (t) => {
  const folder = testFolder(t, Object.fromEntries(table.map(([content], index) => [String(index), content])))
  for (const [index, [content, wanted, rest, lines]] of table.entries()) {
    const file = await open(join(folder, String(index)))
    const start = await tailStart(file, Buffer.byteLength(content), wanted)
    await file.close()
    t.equal(content.slice(start.offset), rest, `${index}`)
    t.equal(start.lines, lines, `${index}`)
  }
})
