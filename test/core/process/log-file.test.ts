// The log of a process that this server does not write itself.
import { readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { boundLog, wordsAfter } from '../../../core/process/log-file.ts'
import { testFolder } from '../../helpers/folder.ts'

t.test('a log that has grown too long is emptied, and one old copy of it is kept', async (t) => {
  const folder = testFolder(t, { 'x.log': 'x' })
  const log = join(folder, 'x.log')
  await boundLog(log, 1000)
  t.same(await readdir(folder), ['x.log'])
  await writeFile(log, 'a line\n')
  await truncate(log, 1001)
  await boundLog(log, 1000)
  t.same(await readdir(folder), ['x.log', 'x.log.1'])
  t.equal((await stat(log)).size, 0)
  t.equal((await readFile(`${log}.1`)).length, 1001)
  await boundLog(join(folder, 'none.log'), 1000)
  t.same(await readdir(folder), ['x.log', 'x.log.1'], 'one that is not there is left so')
})

t.test('of what a process said the last lines since its start are told, and of much only the end is read', async (t) => {
  const log = join(testFolder(t, { 'x.log': 'before\n' }), 'x.log')
  t.equal(await wordsAfter(log, 7), 'it printed nothing')
  await writeFile(log, `before\n${'line\n'.repeat(10_000)}last\n`)
  t.equal(await wordsAfter(log, 7), 'line\nline\nline\nline\nlast')
})
