// The data folder is made with the right modes, and the host keeps its id.
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { prepareDataFolder, readHostId, reserveFile } from '../../../core/data/folder.ts'
import { temporaryFolder } from '../bare-app.ts'

const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o777).toString(8)

t.test('the folder can be passed through and not listed; keys/ is the server\'s alone', async (t) => {
  const folder = join(await temporaryFolder(t), 'a/b')
  await prepareDataFolder(folder)
  await prepareDataFolder(folder)
  t.strictSame([await modeOf(folder), await modeOf(join(folder, 'keys'))], ['711', '700'])
})

t.test('a folder that the operator made keeps its mode', async (t) => {
  const folder = join(await temporaryFolder(t), 'own')
  await mkdir(folder, { mode: 0o750 })
  await prepareDataFolder(folder)
  t.equal(await modeOf(folder), '750')
})

t.test('a database file is made for the server only, and what is in it is kept', async (t) => {
  const file = join(await temporaryFolder(t), 'x.db')
  await reserveFile(file)
  t.equal(await modeOf(file), '600')
  await writeFile(file, 'content')
  await reserveFile(file)
  t.equal(await readFile(file, 'utf8'), 'content')
})

t.test('the host id is made once, and a damaged one is never replaced silently', async (t) => {
  const folder = await temporaryFolder(t)
  const id = await readHostId(folder)
  t.match(id, /^[0-9a-f]{24}$/)
  t.equal(await readHostId(folder), id)
  await writeFile(join(folder, 'host-id'), '')
  await t.rejects(readHostId(folder), { message: /does not hold a host id/ })
})
