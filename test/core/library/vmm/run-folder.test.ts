// The folder of a VMM whose removal fails: a mount in it is what the kernel lets nobody remove.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { runFolder } from '../../../../core/library/vmm/run-folder.ts'

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

  await run('umount', [join(directory, aside, 'busy')])
  folder.remove()
  t.same(await readdir(directory), [])
})
