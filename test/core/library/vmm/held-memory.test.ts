// berth-vm-memory: memory that a program holds can be copied from outside, and a copy that is there already is brought up to date.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile, stat, symlink, writeFile, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { copyChanged, HELD_MEMORY, holding } from '../../../../core/library/vmm/held-memory.ts'
import { createHostCommands } from '../../../../core/process/run.ts'
import { eventually } from '../../../helpers/eventually.ts'
import { testFolder } from '../../../helpers/folder.ts'

const MIB = 2 ** 20
const BYTES = 64 * MIB
const commands = createHostCommands()

function run (t: Test, words: readonly string[]): ChildProcess {
  const [file = '', ...args] = words
  const child = spawn(file, args, { stdio: 'ignore' })
  t.teardown(async () => {
    if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit')
  })
  return child
}

async function write (file: FileHandle, at: number, text: string, times = 1): Promise<void> {
  await file.write(Buffer.alloc(text.length * times, text), 0, text.length * times, at)
}

t.test('what a program holds is copied with its holes, and again only where it has changed', async (t) => {
  const to = join(testFolder(t, {}), 'copy')
  const { pid = 0 } = run(t, [...holding(BYTES), 'sh', '-c', 'exec sleep 600'])
  await eventually('it has become what it runs', async () => (await readFile(`/proc/${pid}/cmdline`, 'utf8')).startsWith('sleep'))
  const memory = await open(HELD_MEMORY.replace('self', String(pid)), 'r+')
  t.teardown(() => memory.close())
  await write(memory, 3 * MIB - 4096, 'a', 3 * MIB)
  await write(memory, BYTES - 1, 'z')
  const copy = async (): Promise<void> => { await copyChanged(commands, { from: pid, bytes: BYTES, to }) }
  const same = async (): Promise<boolean> => (await readFile(to)).equals(await readFile(HELD_MEMORY.replace('self', String(pid))))
  await copy()
  t.ok(await same())
  const { blocks, size, mode } = await stat(to)
  t.equal(size, BYTES)
  t.ok(blocks * 512 < 5 * MIB, 'holes stay holes')
  t.equal(mode & 0o777, 0o600)
  const before = await stat(to, { bigint: true })
  await copy()
  t.equal((await stat(to, { bigint: true })).mtimeNs, before.mtimeNs, 'what is equal is not written')
  await write(memory, 10 * MIB, 'b', 5000)
  await write(memory, 3 * MIB, '\0', 2 * MIB)
  await commands.run('fallocate', ['--punch-hole', '--offset', String(BYTES - 4096), '--length', '4096', HELD_MEMORY.replace('self', String(pid))])
  await copy()
  t.ok(await same(), 'also where there is nothing any more')
})

t.test('content and holes of any length, in places that change, are copied as they are', async (t) => {
  const folder = testFolder(t, {})
  const [from, to] = [join(folder, 'from'), join(folder, 'to')]
  const patterns = [[1, 3, 700, 20, 256, 512, 5, 1], [300, 1, 1, 1000, 40, 90, 255, 257], [2, 600, 3, 3]]
  for (const [round, pages] of patterns.entries()) {
    await writeFile(from, '')
    const file = await open(from, 'r+')
    await file.truncate(BYTES)
    // Content and hole by turns, in pages, until the end.
    for (let at = round * 4096, turn = 0; at < BYTES; at += (pages[turn % pages.length] ?? 1) * 4096, turn++) {
      const length = Math.min((pages[turn % pages.length] ?? 1) * 4096, BYTES - at)
      if (turn % 2 === 0) await write(file, at, `${round}${turn % 7}`, length / 2)
    }
    await file.close()
    await copyChanged(commands, { from, bytes: BYTES, to })
    t.ok((await readFile(to)).equals(await readFile(from)), `pattern ${round}`)
    t.equal((await stat(to)).blocks, (await stat(from)).blocks, 'with the same holes')
  }
})

t.test('a file is brought up to date from another', async (t) => {
  const folder = testFolder(t, { from: 'x'.repeat(10_000), to: 'y'.repeat(10_000), shorter: 'x' })
  await copyChanged(commands, { from: join(folder, 'from'), bytes: 10_000, to: join(folder, 'to') })
  t.equal(await readFile(join(folder, 'to'), 'utf8'), 'x'.repeat(10_000))
  await t.rejects(copyChanged(commands, { from: join(folder, 'from'), bytes: 10_001, to: join(folder, 'to') }), { message: /Invalid argument/ })
  await t.rejects(copyChanged(commands, { from: join(folder, 'from'), bytes: 10_000, to: join(folder, 'shorter') }), { message: /Invalid argument/ })
  await symlink('to', join(folder, 'link'))
  await t.rejects(copyChanged(commands, { from: join(folder, 'from'), bytes: 10_000, to: join(folder, 'link') }), { message: /symbolic links/ }, 'a link is not followed')
})

t.test('what a program has put in the place of its memory is not opened', async (t) => {
  const folder = testFolder(t, {})
  await writeFile(join(folder, 'secret'), 'x'.repeat(4096))
  await commands.run('mkfifo', [join(folder, 'fifo')])
  for (const name of ['secret', 'fifo']) {
    const { pid = 0 } = run(t, ['sh', '-c', `exec 9<>${join(folder, name)}; exec sleep 600`])
    await eventually('it has become what it runs', async () => (await readFile(`/proc/${pid}/cmdline`, 'utf8')).startsWith('sleep'))
    await t.rejects(copyChanged(commands, { from: pid, bytes: 4096, to: join(folder, 'copy') }), { message: /Bad file descriptor/ }, name)
  }
  await t.rejects(copyChanged(commands, { from: process.pid, bytes: 4096, to: join(folder, 'copy') }))
})
