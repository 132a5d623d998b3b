// The folder of the runs may be one of a known name among the temporary files, where any user of the host can make it first.
import { chmod, chown, mkdir, readdir, rename, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { makeRunsFolder, runsIn } from '../../../setup/quickstart/runs-folder.ts'
import { testFolder } from '../../helpers/folder.ts'

const uses: ReadonlyArray<(folder: string) => Promise<unknown>> = [makeRunsFolder, runsIn]
const skip = process.getuid?.() !== 0 && 'to give a folder away needs root'

t.test('it is made for this user alone to write in, and for all to pass through, whatever the umask is', async (t) => {
  for (const umask of [0, 0o077]) {
    const folder = join(testFolder(t), 'runs')
    const before = process.umask(umask)
    await makeRunsFolder(folder).finally(() => process.umask(before))
    t.equal((await stat(folder)).mode & 0o7777, 0o711)
  }
})

t.test('that of an earlier run is used again, and its runs are found', async (t) => {
  const folder = join(testFolder(t), 'runs')
  t.same(await runsIn(folder), [], 'none where there is no folder')
  await makeRunsFolder(folder)
  await mkdir(join(folder, 'run-a'))
  await makeRunsFolder(folder)
  t.same(await runsIn(folder), ['run-a'])
})

t.test('one of another user is neither used nor looked into', { skip }, async (t) => {
  const folder = join(testFolder(t, { runs: { 'run-a': { pid: '1' } } }), 'runs')
  await chmod(folder, 0o755)
  await chown(folder, 65534, 65534)
  for (const use of uses) await t.rejects(async () => await use(folder), { message: `${folder} belongs to another user (65534), who could change what is in it: look at it, take that right from them (chmod 711) or remove it once nothing runs in it, and try again` })
  t.same(await readdir(folder), ['run-a'])
})

t.test('one in which others may write is refused', async (t) => {
  const folder = join(testFolder(t, { runs: {} }), 'runs')
  for (const mode of [0o777, 0o1777, 0o775, 0o757]) {
    await chmod(folder, mode)
    for (const use of uses) await t.rejects(async () => await use(folder), { message: /runs can be written by other users/ }, mode.toString(8))
  }
  t.same(await readdir(folder), [])
})

t.test('a link is not followed, nor is a file taken for it', async (t) => {
  const top = testFolder(t, { own: {} })
  const folder = join(top, 'runs')
  for (const target of ['own', 'nowhere']) {
    await symlink(join(top, target), folder)
    for (const use of uses) await t.rejects(async () => await use(folder), { message: /runs is not a folder/ }, target)
    await rename(folder, join(top, `old-${target}`))
  }
  await writeFile(folder, '')
  for (const use of uses) await t.rejects(async () => await use(folder), { message: /runs is not a folder/ })
  t.same(await readdir(join(top, 'own')), [])
})
