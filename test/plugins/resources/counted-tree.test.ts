// What is counted as it changes is what a walk would count.
import { appendFile, link, mkdir, readdir, rename, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { CountedTree } from '../../../plugins/resources/counted-tree.ts'
import { testFolder } from '../../helpers/folder.ts'

const BLOCK = 'x'.repeat(4096)
const HOUR = 60 * 60_000
/** longer than a tick of the file system's clock */
const TICK_MS = 20

async function walk (folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true })
  const sizes = await Promise.all(entries.filter((entry) => entry.isFile()).map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).blocks * 512))
  return sizes.reduce((sum, bytes) => sum + bytes, 0)
}

/** A registry and its clock, which is minutes ahead at first: everything is old by then. */
async function prepare (folder: string): Promise<{ readonly tree: CountedTree, readonly at: (path: string) => string, pass (ms: number): void }> {
  let ahead = 5 * 60_000
  const at = (path: string): string => join(folder, path)
  for (const blob of ['aa/aa1', 'aa/aa2', 'bb/bb1']) {
    await mkdir(at(`blobs/${blob}`), { recursive: true })
    await writeFile(at(`blobs/${blob}/data`), BLOCK)
  }
  await mkdir(at('repositories/app/tags/latest'), { recursive: true })
  await writeFile(at('repositories/app/tags/latest/link'), 'sha256:aa1')
  return { tree: new CountedTree(folder, () => Date.now() + ahead), at, pass: (ms) => { ahead += ms } }
}

t.test('each change of old folders is counted', async (t) => {
  const folder = testFolder(t)
  const { tree, at } = await prepare(folder)
  t.equal(await tree.bytes(), await walk(folder))
  const changes: Record<string, () => Promise<unknown>> = {
    'a new layer': async () => { await mkdir(at('blobs/aa/aa3')); await writeFile(at('blobs/aa/aa3/data'), BLOCK.repeat(3)) },
    'a new layer in a new folder': async () => { await mkdir(at('blobs/cc/cc1'), { recursive: true }); await writeFile(at('blobs/cc/cc1/data'), BLOCK) },
    'a layer that goes': async () => { await rm(at('blobs/bb/bb1'), { recursive: true }) },
    'another layer in the place of one': async () => {
      await mkdir(at('new'))
      await writeFile(at('new/data'), BLOCK.repeat(9))
      await rm(at('blobs/aa/aa1'), { recursive: true })
      await rename(at('new'), at('blobs/aa/aa1'))
    },
    'a folder that is moved': async () => { await rename(at('blobs/aa'), at('blobs/dd')) },
    'a file beside folders': async () => { await writeFile(at('blobs/index'), BLOCK.repeat(2)) },
    'a file with another in its place': async () => { await writeFile(at('fresh'), BLOCK.repeat(5)); await rename(at('fresh'), at('blobs/index')) },
    'a second name of a file': async () => { await link(at('blobs/index'), at('blobs/same')) },
    'a file that goes': async () => { await rm(at('blobs/index')) },
    'a link elsewhere': async () => { await symlink(process.execPath, at('blobs/elsewhere')) },
    'a folder that gets an old time': async () => { await writeFile(at('repositories/app/extra'), BLOCK); await utimes(at('repositories/app'), 1, 1) },
    'everything goes': async () => { await rm(folder, { recursive: true }) },
    'and comes again': async () => { await mkdir(at('blobs/ee/ee1'), { recursive: true }); await writeFile(at('blobs/ee/ee1/data'), BLOCK) }
  }
  for (const [name, change] of Object.entries(changes)) {
    await delay(TICK_MS)
    await change()
    const wanted = name === 'everything goes' ? 0 : await walk(folder)
    t.equal(await tree.bytes(), wanted, name)
    t.equal(await tree.bytes(), wanted, `${name}, looked at again`)
  }
})

t.test('what comes into an old folder that held nothing is counted', async (t) => {
  const folder = testFolder(t)
  const { tree, at } = await prepare(folder)
  await mkdir(at('repositories/app/uploads'))
  await rm(at('blobs/bb/bb1'), { recursive: true })
  t.equal(await tree.bytes(), await walk(folder))
  await delay(TICK_MS)
  for (const blob of ['repositories/app/uploads/one', 'blobs/bb/bb2']) {
    await mkdir(at(blob))
    await writeFile(at(`${blob}/data`), BLOCK.repeat(7))
    t.equal(await tree.bytes(), await walk(folder), blob)
  }
  await writeFile(at('repositories/app/uploads/file'), BLOCK)
  t.equal(await tree.bytes(), await walk(folder), 'a file, too')
})

t.test('a file that is being written is followed, and so is a folder that changes several times at once', async (t) => {
  const folder = testFolder(t)
  const { tree, at, pass } = await prepare(folder)
  pass(-5 * 60_000)
  await mkdir(at('uploads'))
  for (let part = 0; part < 5; part++) {
    await appendFile(at('uploads/data'), BLOCK)
    await writeFile(at(`blobs/aa/part-${part}`), BLOCK)
    t.equal(await tree.bytes(), await walk(folder))
  }
  pass(61_000)
  t.equal(await tree.bytes(), await walk(folder), 'by now all of it is old')
})

t.test('what was changed without a sign is found within the hour', async (t) => {
  const folder = testFolder(t)
  const { tree, at, pass } = await prepare(folder)
  const before = await tree.bytes()
  await appendFile(at('blobs/aa/aa1/data'), BLOCK)
  t.equal(await tree.bytes(), before, 'what is old is not looked at again')
  pass(HOUR)
  t.equal(await tree.bytes(), await walk(folder))
  t.not(await walk(folder), before)
})

t.test('a folder that is not there takes nothing', async (t) => {
  t.equal(await new CountedTree(join(testFolder(t), 'nothing')).bytes(), 0)
})
