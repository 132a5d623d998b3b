// Memory files are compressed and brought back as they were, holes included; what fails, or is stopped, leaves nothing.
import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { appendFile, link, mkdtemp, open, readdir, readFile, rmdir, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { compressedName, compressMemory, CompressionFailed, expandMemory, MemoryDamaged, type Compression } from '../../../core/library/compressed-memory.ts'
import { isDiskFull } from '../../../core/fs/disk-full.ts'
import { HostCommandMissing } from '../../../core/process/errors.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { testFolder } from '../../helpers/folder.ts'
import { withoutMounts } from '../../helpers/rights.ts'

const commands = createHostCommands()
const MIB = 2 ** 20

/** Some MiB of content, half of it without any order, among holes. */
async function makeMemory (path: string, { size = 64, content = 8 } = {}): Promise<void> {
  const file = await open(path, 'wx')
  await file.truncate(size * MIB)
  const step = Math.floor(size / content)
  for (let at = 0; at < content; at++) await file.write(at % 2 === 0 ? randomBytes(MIB) : Buffer.alloc(MIB, 'abcdefgh'), 0, MIB, at * step * MIB + 4096)
  await file.close()
}

async function sumOf (path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path)) hash.update(chunk)
  return hash.digest('hex')
}

const storedMib = async (path: string): Promise<number> => Math.round((await stat(path)).blocks * 512 / MIB)

/** Processes of a tool with this file among its arguments. */
async function processesWith (path: string): Promise<string[]> {
  const lines = await Promise.all((await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(async (pid) => await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')))
  return lines.filter((line) => line.includes(path) && line.includes('tar\0'))
}

const table: readonly Compression[] = [
  { algorithm: 'zstd', level: 1 }, { algorithm: 'zstd', level: 19 }, { algorithm: 'lz4', level: 0 }, { algorithm: 'lz4', level: 9 }
]
for (const compression of table) {
  t.test(`${compression.algorithm} of level ${compression.level} brings back every byte and every hole`, async (t) => {
    const folder = testFolder(t)
    const [memory, compressed, expanded] = [join(folder, 'memory'), join(folder, compressedName(compression.algorithm)), join(folder, 'a & b|c\\d')]
    await makeMemory(memory)
    const bytes = await compressMemory(commands, memory, compressed, compression)
    t.equal((await stat(compressed)).size, bytes)
    t.ok(bytes < 5 * MIB && bytes > 4 * MIB, `${bytes} bytes: what has an order is small, and holes are nothing`)
    t.equal((await stat(compressed)).mode & 0o777, 0o600)
    t.equal(await expandMemory(commands, compressed, expanded, compression.algorithm), 64 * MIB)
    t.equal(await sumOf(expanded), await sumOf(memory))
    t.equal(await storedMib(expanded), await storedMib(memory))
    t.equal((await stat(expanded)).mode & 0o777, 0o600)
    t.same((await readdir(folder)).sort(), ['a & b|c\\d', 'memory', compressedName(compression.algorithm)].sort())
  })
}

t.test('the size of the holes costs next to nothing', async (t) => {
  const folder = testFolder(t)
  const times: number[] = []
  // The larger one first: the first run also pays for what is read from disk.
  for (const size of [64 * 1024, 64]) {
    const [memory, compressed, expanded] = [join(folder, `memory${size}`), join(folder, `c${size}`), join(folder, `e${size}`)]
    await makeMemory(memory, { size, content: 4 })
    const began = performance.now()
    await compressMemory(commands, memory, compressed, { algorithm: 'lz4', level: 1 })
    t.equal(await expandMemory(commands, compressed, expanded, 'lz4'), size * MIB)
    times.push(performance.now() - began)
    t.ok(await storedMib(expanded) <= 5)
  }
  const [large = 0, small = 0] = times
  t.comment(`64 GB of holes: ${Math.round(large)} ms, 64 MB: ${Math.round(small)} ms`)
  t.ok(large < 10_000, 'reading 64 GB of zeros takes longer than that')
})

t.test('a file without content, and one of no bytes, come back as they are', async (t) => {
  const folder = testFolder(t)
  for (const [name, size] of [['hole', 300 * MIB], ['empty', 0]] as const) {
    const path = join(folder, name)
    await writeFile(path, '')
    await truncate(path, size)
    await compressMemory(commands, path, `${path}.c`, { algorithm: 'zstd', level: 3 })
    t.equal(await expandMemory(commands, `${path}.c`, `${path}.e`, 'zstd'), size)
    t.equal(await storedMib(`${path}.e`), 0)
  }
})

t.test('what exists is not overwritten', async (t) => {
  const folder = testFolder(t, { there: 'kept' })
  const [memory, compressed, there] = [join(folder, 'memory'), join(folder, 'c'), join(folder, 'there')]
  await makeMemory(memory)
  await t.rejects(compressMemory(commands, memory, there, { algorithm: 'lz4', level: 1 }), { code: 'EEXIST' })
  await compressMemory(commands, memory, compressed, { algorithm: 'lz4', level: 1 })
  await t.rejects(expandMemory(commands, compressed, there, 'lz4'), { code: 'EEXIST' })
  t.equal(await readFile(there, 'utf8'), 'kept')
})

for (const what of ['compression', 'expansion'] as const) {
  t.test(`a ${what} that is stopped leaves no file and no process`, async (t) => {
    const folder = testFolder(t)
    const [memory, compressed, expanded] = [join(folder, 'memory'), join(folder, 'c'), join(folder, 'e')]
    await makeMemory(memory, { size: 512, content: 96 })
    if (what === 'expansion') await compressMemory(commands, memory, compressed, { algorithm: 'zstd', level: 1 })
    const target = what === 'compression' ? compressed : expanded
    const abort = new AbortController()
    const work = what === 'compression'
      ? compressMemory(commands, memory, compressed, { algorithm: 'zstd', level: 19 }, abort.signal)
      : expandMemory(commands, compressed, expanded, 'zstd', abort.signal)
    const running = { goesOn: true }
    work.catch(() => {}).finally(() => { running.goesOn = false })
    // Polled: nobody tells that a tool has begun to write.
    while (running.goesOn && (!existsSync(target) || (await processesWith(folder)).length === 0)) await new Promise((resolve) => setImmediate(resolve))
    abort.abort()
    await t.rejects(work, { name: 'AbortError' })
    t.notOk(existsSync(target))
    t.same(await processesWith(folder), [])
  })
}

t.test('nothing begins after the signal', async (t) => {
  const folder = testFolder(t, { memory: 'x' })
  await t.rejects(compressMemory(commands, join(folder, 'memory'), join(folder, 'c'), { algorithm: 'zstd', level: 1 }, AbortSignal.abort()), { name: 'AbortError' })
  await t.rejects(expandMemory(commands, join(folder, 'memory'), join(folder, 'e'), 'zstd', AbortSignal.abort()), { name: 'AbortError' })
  t.same(await readdir(folder), ['memory'])
})

async function tinyDisk (t: Test): Promise<string> {
  // Not in the folder of the test, which goes before this is unmounted.
  const disk = await mkdtemp(join(tmpdir(), 'berth-tiny-disk-'))
  await commands.run('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', disk])
  t.teardown(async () => {
    await commands.run('umount', [disk])
    await rmdir(disk)
  })
  return disk
}

for (const algorithm of ['zstd', 'lz4'] as const) {
  t.test(`a full disk is named by both ways of ${algorithm}, and nothing is left on it`, { skip: withoutMounts }, async (t) => {
    const folder = testFolder(t)
    const disk = await tinyDisk(t)
    const [memory, compressed] = [join(folder, 'memory'), join(folder, 'c')]
    await makeMemory(memory)
    const failed = await compressMemory(commands, memory, join(disk, 'c'), { algorithm, level: 1 }).catch((error: unknown) => error)
    t.ok(CompressionFailed.is(failed))
    t.match(failed, { message: 'the memory could not be compressed: the compressed file could not be written; the disk may be full' })
    await compressMemory(commands, memory, compressed, { algorithm, level: 1 })
    const full = await expandMemory(commands, compressed, join(disk, 'e'), algorithm).catch((error: unknown) => error)
    t.ok(isDiskFull(full), String(full))
    t.same(await readdir(disk), [])
  })

  t.test(`what is no whole memory compressed by ${algorithm} is refused, and nothing is left of it`, async (t) => {
    const folder = testFolder(t, { out: {} })
    const [memory, good, bad, out] = [join(folder, 'memory'), join(folder, 'good'), join(folder, 'bad'), join(folder, 'out', 'memory')]
    await makeMemory(memory)
    await compressMemory(commands, memory, good, { algorithm, level: 1 })
    const whole = await readFile(good)
    const flipped = (at: number): Buffer => {
      const copy = Buffer.from(whole)
      copy[at] = (copy[at] ?? 0) ^ 0x40
      return copy
    }
    const damages: readonly [string, Buffer][] = [
      ['cut off', whole.subarray(0, whole.length / 2)], ['cut off at its last byte', whole.subarray(0, -1)], ['a bit turned', flipped(whole.length >> 1)],
      ['a bit of the checksum turned', flipped(whole.length - 1)], ['random', randomBytes(100_000)], ['nothing', Buffer.alloc(0)]
    ]
    for (const [what, content] of damages) {
      await writeFile(bad, content)
      const error = await expandMemory(commands, bad, out, algorithm).catch((caught: unknown) => caught)
      t.ok(MemoryDamaged.is(error), `${what}: ${String(error)}`)
      t.notMatch(error, { message: /\n/ }, 'one line')
      t.same(await readdir(join(folder, 'out')), [], what)
    }
    await t.rejects(expandMemory(commands, join(folder, 'none'), out, algorithm), { code: 'memory_damaged', message: /file is gone/ })
    await t.rejects(expandMemory(commands, join(folder, 'out'), out, algorithm), { code: 'memory_damaged', message: /no file/ })
  })

  t.test(`an archive of ${algorithm} with anything else in it is refused, and reaches nothing outside`, async (t) => {
    const folder = testFolder(t, { secret: 'untouched', members: {}, out: {} })
    const members = join(folder, 'members')
    const pack = async (name: string): Promise<string> => {
      const archive = join(folder, name)
      await commands.run('tar', ['--create', `--use-compress-program=${algorithm}`, `--file=${archive}`, `--directory=${members}`, '--absolute-names', '--', ...await readdir(members)])
      return archive
    }
    const out = join(folder, 'out', 'expanded')
    await writeFile(join(members, 'other'), 'x')
    await t.rejects(expandMemory(commands, await pack('other'), out, algorithm), { code: 'memory_damaged', message: /Not found in archive/ })
    await symlink(join(folder, 'secret'), join(members, 'memory'))
    await t.rejects(expandMemory(commands, await pack('link'), out, algorithm), { code: 'memory_damaged', message: /no memory/ })
    t.same(await readdir(join(folder, 'out')), [])
    t.equal(await readFile(join(folder, 'secret'), 'utf8'), 'untouched')
  })
}

t.test('a source that is no file, or is there twice, is told apart', async (t) => {
  const folder = testFolder(t, { memory: 'x', folder: {} })
  await symlink(join(folder, 'memory'), join(folder, 'symlink'))
  for (const name of ['folder', 'symlink']) {
    await t.rejects(compressMemory(commands, join(folder, name), join(folder, 'c'), { algorithm: 'zstd', level: 1 }), { code: 'compression_failed', message: /no file/ })
  }
  await link(join(folder, 'memory'), join(folder, 'second'))
  await compressMemory(commands, join(folder, 'second'), join(folder, 'c'), { algorithm: 'zstd', level: 1 })
  t.equal(await expandMemory(commands, join(folder, 'c'), join(folder, 'e'), 'zstd'), 1)
})

t.test('a file that is written meanwhile is not taken for whole', async (t) => {
  const folder = testFolder(t)
  const [memory, compressed] = [join(folder, 'memory'), join(folder, 'c')]
  await makeMemory(memory, { size: 512, content: 64 })
  const reading = { goesOn: true }
  const work = compressMemory(commands, memory, compressed, { algorithm: 'zstd', level: 10 }).finally(() => { reading.goesOn = false })
  work.catch(() => {})
  while (reading.goesOn) await appendFile(memory, '.')
  await t.rejects(work, { code: 'compression_failed', message: /changed as we read it|shrank|padding/ })
  t.notOk(existsSync(compressed))
})

t.test('a missing tool is named with its package', async (t) => {
  const folder = testFolder(t, { memory: 'x' })
  for (const missing of ['tar', 'lz4']) {
    const without = { run: async (file: string, args: readonly string[]) => await commands.run(file === missing ? join(folder, missing) : file, args) }
    const error = await compressMemory(without, join(folder, 'memory'), join(folder, 'c'), { algorithm: 'lz4', level: 1 }).catch((caught: unknown) => caught)
    t.ok(HostCommandMissing.is(error))
    t.match(error, { message: new RegExp(`install the package ${missing}`) })
    t.same(await readdir(folder), ['memory'])
  }
})
