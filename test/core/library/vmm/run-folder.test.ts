// The folder of a VMM whose removal fails, or takes long: a mount in it is what the kernel lets nobody remove, and a VMM that its guest controls may fill it.
import { execFile } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { runFolder } from '../../../../core/library/vmm/run-folder.ts'
import { eventually } from '../../../helpers/eventually.ts'

const run = promisify(execFile)
const skip = process.getuid?.() === 0 ? false : 'only root can mount'

t.test('a folder that cannot be removed keeps nobody from the next one of its name, and is removed as soon as that can be', { skip }, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'run-folder-'))
  const folder = runFolder(directory, 'vmm', 'no VMM at all')
  t.teardown(async () => {
    for (const name of await readdir(directory)) await run('umount', [join(directory, name, 'busy')]).catch(() => {})
    await rm(directory, { recursive: true })
  })

  await folder.make(undefined)
  await mkdir(join(folder.path, 'busy'))
  await run('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'none', join(folder.path, 'busy')])
  folder.remove()
  t.equal(folder.mark(), undefined)
  const [aside = ''] = await readdir(directory)

  await folder.make(undefined)
  await writeFile(join(folder.path, 'file'), '')
  await folder.reclaim()
  t.same(await readdir(directory), [aside], 'what can be removed is, and it is tried again in vain')

  // The last vain try may still have it open.
  await eventually('nobody has it open', async () => await run('umount', [join(directory, aside, 'busy')]).then(() => true, () => false))
  t.ok(await eventually('nothing is left', async () => {
    folder.remove()
    return (await readdir(directory)).length === 0
  }))
})

t.test('a folder that its VMM has filled keeps nobody waiting: it gets another name, and is removed little by little; one as VMMs leave it goes at once', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'run-folder-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const folder = runFolder(directory, 'vmm', 'no VMM at all')
  const fillings: Readonly<Record<string, () => Promise<void>>> = {
    async 'many files' () { for (let count = 0; count < 1000; count++) await writeFile(join(folder.path, String(count)), '') },
    async 'folders in folders' () { await mkdir(join(folder.path, 'a/'.repeat(1000)), { recursive: true }) },
    async 'names that are no text' () { for (let count = 0; count < 1000; count++) await writeFile(Buffer.concat([Buffer.from(`${folder.path}/`), Buffer.of(0xff), Buffer.from(String(count))]), '') },
    async 'a large file' () { await writeFile(join(folder.path, 'large'), Buffer.alloc(2 ** 26 + 1, 1)) }
  }
  for (const [what, fill] of Object.entries(fillings)) {
    await folder.make(undefined)
    await fill()
    folder.remove()
    t.match(readdirSync(directory), [/^vmm\.left-/], what)
    t.equal(folder.mark(), undefined)
    // Neither the next VMM nor its end waits for that.
    await folder.make(undefined)
    await writeFile(join(folder.path, 'file'), '')
    folder.remove()
    t.equal(folder.mark(), undefined)
    await eventually('it is removed', () => readdirSync(directory).length === 0)
  }
  await folder.make(undefined)
  await mkdir(join(folder.path, 'room'))
  for (const name of ['a', 'room/b']) await writeFile(join(folder.path, name), '')
  folder.remove()
  t.same(readdirSync(directory), [])
})

t.test('what a server that was killed has left to remove goes with the end of the next VMM', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'run-folder-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  await mkdir(join(directory, 'vmm.left-x'))
  for (let count = 0; count < 1000; count++) await writeFile(join(directory, 'vmm.left-x', String(count)), '')
  runFolder(directory, 'vmm', 'no VMM at all').remove()
  t.same(readdirSync(directory), ['vmm.left-x'])
  await eventually('it is removed', () => readdirSync(directory).length === 0)
})
