// berth-vm-memory: what a program has changed of a file that it maps privately is written, given to another one, and joined to a whole file.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { HELD_MEMORY } from '../../../../core/library/vmm/held-memory.ts'
import { fillMemory, joinChanges, lending, writeChanges } from '../../../../core/library/vmm/private-memory.ts'
import { createHostCommands } from '../../../../core/process/run.ts'
import { testFolder } from '../../../helpers/folder.ts'

const PAGE = 4096
const BYTES = 600 * PAGE
const commands = createHostCommands()

/** Maps what it was lent, changes it as it is told, one expression a line, and prints what that gives. */
const PROGRAM = `
import mmap, sys, hashlib
file = open('${HELD_MEMORY}', 'rb')
memory = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE)
print('ready', flush=True)
for line in sys.stdin:
    print(eval(line), flush=True)
`

interface Mapping { readonly pid: number, tell (expression: string): Promise<string> }

async function map (t: Test, base: string): Promise<Mapping> {
  const [file = '', ...args] = [...lending(base), 'python3', '-c', PROGRAM]
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(async () => { if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit') })
  // Line by line: an answer may come in several pieces.
  const answers = createInterface(child.stdout)[Symbol.asyncIterator]()
  const answer = async (): Promise<string> => String((await answers.next()).value)
  await answer()
  return {
    pid: child.pid ?? 0,
    async tell (expression) {
      child.stdin.write(`${expression}\n`)
      return await answer()
    }
  }
}

const put = (page: number, text: string): string => `memory.seek(${page * PAGE}) or memory.write(${text})`
const SUM = 'hashlib.md5(memory[:]).hexdigest()'

t.test('changes hold what differs, zeros as well, and make another mapping and a whole file the same', async (t) => {
  const folder = testFolder(t, {})
  const base = join(folder, 'base')
  await writeFile(base, Buffer.alloc(BYTES, 'base'), { mode: 0o444 })
  const one = await map(t, base)
  await one.tell('sum(memory[:])')
  // A run that is longer than a piece, a page of zeros, and the last page.
  await one.tell(put(3, `b'x' * ${300 * PAGE}`))
  await one.tell(put(400, `bytes(${PAGE})`))
  await one.tell(put(599, 'b\'end\''))
  const changes = join(folder, 'changes')
  const mapped = { base, bytes: BYTES }
  await writeChanges(commands, { ...mapped, pid: one.pid }, changes)
  const { size, mode } = await stat(changes)
  t.equal(size, 302 * PAGE + PAGE, 'the pages, and their numbers')
  t.equal(mode & 0o777, 0o600)
  const two = await map(t, base)
  await fillMemory(commands, { ...mapped, pid: two.pid }, changes)
  const sum = await one.tell(SUM)
  t.equal(await two.tell(SUM), sum)
  const again = join(folder, 'again')
  await writeChanges(commands, { ...mapped, pid: two.pid }, again)
  t.ok((await readFile(again)).equals(await readFile(changes)), 'what was filled in counts as changed')
  const whole = join(folder, 'whole')
  await joinChanges(commands, { ...mapped, changes }, whole)
  const three = await map(t, whole)
  t.equal(await three.tell(SUM), sum)
  t.ok((await readFile(base)).equals(Buffer.alloc(BYTES, 'base')), 'the base is as it was')
})

t.test('a mapping without changes gives a file of none', async (t) => {
  const base = join(testFolder(t, {}), 'base')
  await writeFile(base, Buffer.alloc(BYTES, 'b'))
  const one = await map(t, base)
  await one.tell('sum(memory[:])')
  await writeChanges(commands, { base, bytes: BYTES, pid: one.pid }, `${base}.changes`)
  t.equal((await stat(`${base}.changes`)).size, PAGE)
  await fillMemory(commands, { base, bytes: BYTES, pid: one.pid }, `${base}.changes`)
})

t.test('a file of changes that was cut or spoilt, or of memory of another size, and a process that maps nothing of the base, are refused', async (t) => {
  const folder = testFolder(t, {})
  const base = join(folder, 'base')
  await writeFile(base, Buffer.alloc(BYTES, 'b'))
  const one = await map(t, base)
  await one.tell(put(1, 'b\'x\''))
  const mapped = { base, bytes: BYTES, pid: one.pid }
  const good = join(folder, 'good')
  await writeChanges(commands, mapped, good)
  const bad = join(folder, 'bad')
  const spoilt: ReadonlyArray<(path: string) => Promise<void>> = [
    async (path) => await truncate(path, (await stat(good)).size - 1),
    async (path) => await writeFile(path, 'nothing'),
    async (path) => { const bytes = await readFile(good); bytes.writeBigUInt64LE(600n, 32); await writeFile(path, bytes) },
    async (path) => { const bytes = await readFile(good); bytes.writeBigUInt64LE(2n ** 40n, 24); await writeFile(path, bytes) }
  ]
  for (const spoil of spoilt) {
    await copyFile(good, bad)
    await spoil(bad)
    await t.rejects(fillMemory(commands, mapped, bad), { message: /Invalid argument/ })
    await t.rejects(joinChanges(commands, { ...mapped, changes: bad }, join(folder, 'whole')), { message: /Invalid argument/ })
  }
  await t.rejects(fillMemory(commands, { ...mapped, bytes: BYTES - PAGE }, good), { message: /Invalid argument/ })
  await t.rejects(writeChanges(commands, { ...mapped, pid: process.pid }, join(folder, 'none')), { message: /No such file/ })
  await t.rejects(stat(join(folder, 'none')), { code: 'ENOENT' })
})
