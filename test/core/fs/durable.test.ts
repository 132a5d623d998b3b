import { execFileSync } from 'node:child_process'
import { chmod, lstat, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { removeTree, renameDurably, syncFile, syncFolder, writeFileDurably } from '../../../core/fs/durable.ts'
import { flatten } from '../../../core/fs/flatten.ts'
import { testFolder } from '../../helpers/folder.ts'

t.test('a file is written whole, with its mode, and nothing else stays', async (t) => {
  const folder = testFolder(t)
  const path = join(folder, 'key')
  await writeFileDurably(path, 'one', 0o600)
  await writeFileDurably(path, 'two', 0o666)
  t.equal(await readFile(path, 'utf8'), 'two')
  t.equal((await stat(path)).mode & 0o777, 0o666, 'the mode is not cut by the umask')
  t.same(await readdir(folder), ['key'])
})

t.test('a write that fails leaves the old file and no temporary one', async (t) => {
  const folder = testFolder(t, { target: { inside: '' } })
  await t.rejects(writeFileDurably(join(folder, 'target'), 'text'), { code: 'EISDIR' })
  t.same(await readdir(folder), ['target'])
})

t.test('a rename moves between folders', async (t) => {
  const folder = testFolder(t, { a: { file: 'x' }, b: {} })
  await renameDurably(join(folder, 'a/file'), join(folder, 'b/file'))
  t.equal(await readFile(join(folder, 'b/file'), 'utf8'), 'x')
  await syncFile(join(folder, 'b/file'))
  await syncFolder(folder)
})

t.test('a tree is removed with folders that have no permissions, without following links', async (t) => {
  const folder = testFolder(t, { keep: { file: 'x' } })
  await mkdir(join(folder, 'tree/locked'), { recursive: true })
  await writeFile(join(folder, 'tree/locked/file'), '')
  await symlink(join(folder, 'keep'), join(folder, 'tree/link'))
  await chmod(join(folder, 'tree/locked'), 0)
  await removeTree(join(folder, 'tree'))
  await t.rejects(lstat(join(folder, 'tree')), { code: 'ENOENT' })
  t.equal(await readFile(join(folder, 'keep/file'), 'utf8'), 'x')
  await removeTree(join(folder, 'tree'))
})

t.test('a tree is made shallow although a removal that has failed still goes on in it', async (t) => {
  for (let round = 0; round < 5; round++) {
    const root = join(testFolder(t), 'tree')
    await Promise.all(Array.from({ length: 20 }, async (_, index) => { await mkdir(join(root, String(index), 'a/b/c/d'), { recursive: true }) }))
    await mkdir(join(root, 'stays'))
    const removal = Promise.all(Array.from({ length: 20 }, async (_, index) => { await rm(join(root, String(index)), { recursive: true }) }))
    t.type(await flatten(root), 'number')
    await removal
    t.same(await readdir(root), ['stays'])
  }
})

t.test('a tree is removed that is too deep for the kernel to be named, several times over, and with names that are no text', async (t) => {
  const folder = testFolder(t, { keep: { file: 'x' } })
  const script = 'mkdir tree && cd tree && i=0 && while [ $i -lt 60 ]; do mkdir "$1" "$2" && : > file && ln -s "$3" link && cd -P "$1" && i=$((i+1)); done'
  execFileSync('sh', ['-e', '-c', script, 'sh', 'd'.repeat(200), 'e'.repeat(200), join(folder, 'keep')], { cwd: folder })
  execFileSync('sh', ['-e', '-c', 'cd -P "$1" && mkdir "$(printf "\\377")" && cd -P "$(printf "\\377")" && : > "$(printf "\\376")"', 'sh', join(folder, 'tree', 'd'.repeat(200))])
  await removeTree(join(folder, 'tree'))
  t.same(await readdir(folder), ['keep'])
  t.equal(await readFile(join(folder, 'keep/file'), 'utf8'), 'x')
})
