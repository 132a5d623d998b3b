// The log of requests: a share for each VM, and what a crash leaves.
import t from 'tap'
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { appendFile, mkdir, readdir, rename, rm, rmdir, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { auditLine, type AuditRecord } from '../../proxy/audit/line.ts'
import { AuditLog } from '../../proxy/audit/log.ts'
import { openPipe } from '../../proxy/audit/pipe.ts'
import { AuditStore } from '../../proxy/audit/store.ts'
import { Counters } from '../../proxy/log/counters.ts'
import { createLog } from '../../proxy/log/log.ts'
import { eventually } from '../helpers/eventually.ts'
import { testFolder } from '../helpers/folder.ts'

const quiet = createLog(() => {})
const ROOM = 1024 * 1024

function storeIn (folder: string, more: { vmBytes?: number, totalBytes?: number } = {}): AuditStore {
  return new AuditStore({ folder, vmBytes: ROOM, totalBytes: ROOM, ...more }, quiet)
}

const recordOf = (vm: string, path: string): AuditRecord => ({ vm, revision: 1, protocol: 'http/1.1', host: 'api.good.test', port: 443, method: 'GET', path, status: 200, injected: [], bytesIn: 0, bytesOut: 0, durationMs: 1 })

function add (store: AuditStore, vm: string, count: number): void {
  for (let made = 0; made < count; made++) store.add(vm, auditLine(recordOf(vm, `/${made}`)))
}

async function bytesIn (folder: string): Promise<number> {
  const files = (await readdir(folder, { recursive: true, withFileTypes: true })).filter(entry => entry.isFile())
  return (await Promise.all(files.map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).size))).reduce((sum, size) => sum + size, 0)
}

const all = async (store: AuditStore, vm: string) => (await store.read({ vm, after: 0, limit: 100_000 })).entries

t.test('a VM with very many requests pushes out nothing but its own, and all of it stays within its bounds', async (t) => {
  const folder = join(testFolder(t), 'log')
  const store = storeIn(folder)
  add(store, 'quiet', 5)
  for (let round = 0; round < 33; round++) {
    add(store, 'loud', 1_000)
    await store.flush()
    t.ok(await bytesIn(folder) <= ROOM * 1.3, 'never much more than all together may have')
  }
  t.same((await all(store, 'quiet')).map(({ seq }) => seq), [1, 2, 3, 4, 5])
  const loud = await all(store, 'loud')
  t.equal(loud.at(-1)?.seq, 33_000)
  t.equal(store.dropped, 33_000 - loud.length, 'what went is counted, and the first number that is left tells of it')
  t.equal(loud[0]?.seq, store.dropped + 1)
  t.equal(await bytesIn(folder), store.bytes)
})

t.test('where VMs have more than there is room for together, those that have most give up theirs', async (t) => {
  const folder = join(testFolder(t), 'log')
  const store = storeIn(folder)
  add(store, 'first', 4_000)
  add(store, 'small', 50)
  await store.flush()
  for (const vm of ['second', 'third']) add(store, vm, 4_000)
  await store.flush()
  t.equal((await all(store, 'small')).length, 50)
  for (const vm of ['first', 'second', 'third']) t.ok((await all(store, vm)).length > 500, `${vm} has a part of its own`)
  t.ok(await bytesIn(folder) <= ROOM)
})

t.test('a bound of one VM holds by itself, too', async (t) => {
  const store = storeIn(join(testFolder(t), 'log'), { vmBytes: 128 * 1024, totalBytes: 64 * ROOM })
  add(store, 'loud', 5_000)
  await store.flush()
  add(store, 'loud', 1)
  await store.flush()
  t.ok(store.bytes <= 128 * 1024)
})

t.test('numbers go on after a restart, also behind half a line, an empty file and one that is gone', async (t) => {
  const folder = join(testFolder(t), 'log')
  const first = storeIn(folder)
  add(first, 'a', 3)
  await first.flush()
  const [name = ''] = await readdir(folder)
  const [file = ''] = await readdir(join(folder, name))
  await appendFile(join(folder, name, file), '{"seq":4,"vm":"a","tim')
  const second = storeIn(folder)
  add(second, 'a', 2)
  await second.flush()
  t.same((await all(second, 'a')).map(({ seq }) => seq), [1, 2, 3, 4, 5])
  await truncate(join(folder, name, file))
  await rm(join(folder, name, file))
  await writeFile(join(folder, name, '0000000000000006.jsonl'), '')
  const third = storeIn(folder)
  add(third, 'a', 1)
  t.same((await third.read({ vm: 'a', after: 0, limit: 10 })).entries.map(({ seq }) => seq), [6])
})

t.test('reading goes on behind a number, over files that are full', async (t) => {
  const store = storeIn(join(testFolder(t), 'log'))
  add(store, 'a', 2_000)
  await store.flush()
  let after = 0
  const seen: number[] = []
  for (;;) {
    const { entries, next } = await store.read({ vm: 'a', after, limit: 300 })
    if (entries.length === 0) break
    seen.push(...entries.map(({ seq }) => seq))
    after = next
  }
  t.same(seen, Array.from({ length: 2_000 }, (_, index) => index + 1))
})

t.test('what the disk does not take waits, and is written once, when it can be', async (t) => {
  const folder = join(testFolder(t), 'log')
  const store = storeIn(folder)
  // A file in its place keeps root out, too.
  await rm(folder, { recursive: true })
  await writeFile(folder, '')
  add(store, 'a', 3)
  await store.flush()
  await rm(folder)
  const entries = await eventually('they are written', async () => {
    await store.flush()
    const found = await all(store, 'a')
    return found.length > 0 && found
  })
  t.same(entries.map(({ seq }) => seq), [1, 2, 3])
})

t.test('a part of the log that cannot be read as its VM sends its first request keeps that line waiting, and those of others not', async (t) => {
  const folder = join(testFolder(t), 'log')
  const first = storeIn(folder)
  add(first, 'a', 3)
  await first.flush()
  const [name = ''] = await readdir(folder)
  const [file = ''] = await readdir(join(folder, name))
  const path = join(folder, name, file)
  await appendFile(path, '{"seq":4,"vm":"a","tim')
  const store = storeIn(folder)
  await rename(path, `${path}.away`)
  await mkdir(path)
  t.doesNotThrow(() => { add(store, 'a', 2) })
  add(store, 'b', 1)
  await eventually('the other is written', async () => (await all(store, 'b')).length === 1)
  await rmdir(path)
  await rename(`${path}.away`, path)
  const entries = await eventually('all are written', async () => {
    await store.flush()
    const found = await all(store, 'a')
    return found.length > 3 && found
  })
  t.same(entries.map(({ seq }) => seq), [1, 2, 3, 4, 5])
  t.equal(store.bytes, await bytesIn(folder))
})

t.test('a worker whose lines nobody takes any more has no room for further requests', async (t) => {
  const path = join(testFolder(t), 'pipe')
  execFileSync('mkfifo', [path])
  const reading = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const log = new AuditLog(openPipe(openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)), new Counters())
  t.ok(log.available)
  closeSync(reading)
  await eventually('requests are refused', () => {
    for (let count = 0; count < 500; count++) log.record(recordOf('a', '/'))
    return !log.available
  })
})
