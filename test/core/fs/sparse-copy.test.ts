// Memory files are copied with their holes, and not at all when that fails.
import { mkdtemp, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { copySparse } from '../../../core/fs/sparse-copy.ts'
import { syncMemoryImage } from '../../../core/library/memory-image.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { testFolder } from '../../helpers/folder.ts'

const commands = createHostCommands()
const MIB = 2 ** 20

/** 64 MiB: 1 MiB of something, 1 MiB of written zeros, holes. */
async function makeMemory (path: string): Promise<void> {
  const file = await open(path, 'wx')
  await file.truncate(64 * MIB)
  await file.write(Buffer.alloc(MIB, 7), 0, MIB, 10 * MIB)
  await file.write(Buffer.alloc(MIB), 0, MIB, 30 * MIB)
  await file.close()
}

const storedMib = async (path: string): Promise<number> => Math.round((await stat(path)).blocks * 512 / MIB)

await t.test('the content is the same, and holes stay holes, on disk and in memory', async (t) => {
  for (const folder of [testFolder(t), await mkdtemp('/dev/shm/berth-memory-file-')]) {
    t.teardown(() => rm(folder, { recursive: true, force: true }))
    const [from, to, compact] = [join(folder, 'from'), join(folder, 'to'), join(folder, 'compact')]
    await makeMemory(from)
    t.match(await copySparse(commands, from, to), /^(sparse|reflink)$/)
    t.equal(await copySparse(commands, from, compact, { dropZeros: true }), 'sparse')
    await syncMemoryImage([from, to, compact])
    const content = await readFile(from)
    for (const copy of [to, compact]) t.ok(content.equals(await readFile(copy)))
    t.ok(await storedMib(to) <= 3, `${await storedMib(to)} MiB`)
    t.ok(await storedMib(compact) <= 2, `${await storedMib(compact)} MiB, without the zeros`)
  }
})

await t.test('a copy that fails leaves nothing, and an existing file is left alone', async (t) => {
  const folder = testFolder(t)
  await t.rejects(copySparse(commands, join(folder, 'none'), join(folder, 'to')))
  t.same(await readdir(folder), [])
  await makeMemory(join(folder, 'from'))
  await writeFile(join(folder, 'to'), 'something else')
  for (const dropZeros of [false, true]) await t.rejects(copySparse(commands, join(folder, 'from'), join(folder, 'to'), { dropZeros }), { code: 'EEXIST' })
  t.equal(await readFile(join(folder, 'to'), 'utf8'), 'something else')
  const why = new Error('no longer wanted')
  await t.rejects(copySparse(commands, join(folder, 'from'), join(folder, 'new'), { signal: AbortSignal.abort(why) }), why)
  t.same((await readdir(folder)).sort(), ['from', 'to'])
})
