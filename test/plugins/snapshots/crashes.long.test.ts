// The server dies between any two steps of its work on a snapshot: the next one makes it whole, or removes all of it.
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { create } from '../../../plugins/snapshots/operations/create.ts'
import { remove } from '../../../plugins/snapshots/operations/delete.ts'
import { recover } from '../../../plugins/snapshots/operations/recover.ts'
import { fork } from '../../../plugins/snapshots/operations/fork.ts'
import { until } from '../instances/crash.ts'
import { ScriptedHost } from '../instances/scripted.ts'
import { CONTENT, names, openParts, type OnStep, type Parts } from './parts.ts'

async function temporaryFolder (t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-snapshots-test-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  return folder
}

const zstd = { enabled: true, algorithm: 'zstd' } as const

interface Operation {
  /** what is there before */
  prepare (parts: Parts): Promise<unknown>
  /** resolves when all of it has been done */
  run (parts: Parts): Promise<unknown>
}

const onlyOne = async ({ context }: Parts): Promise<string> => (await context.repository.ready())[0]?.id ?? ''

const operations: Readonly<Record<string, Operation>> = {
  create: {
    prepare: async () => {},
    run: async ({ context }) => await create(context, 'web', { kind: 'Standby', name: 'one' })
  },
  delete: {
    prepare: async ({ context }) => await create(context, 'web', { kind: 'Standby', name: 'one' }),
    run: async (parts) => { await remove(parts.context, await onlyOne(parts)) }
  },
  compression: {
    prepare: async () => {},
    async run (parts) {
      const { id } = await create(parts.context, 'web', { kind: 'Standby', name: 'one', compression: zstd })
      await settled(parts, id)
    }
  },
  'delete during compression': {
    prepare: async () => {},
    async run ({ context }) {
      const { id } = await create(context, 'web', { kind: 'Standby', name: 'one', compression: zstd })
      await remove(context, id)
    }
  }
}

async function settled ({ context }: Parts, id: string): Promise<void> {
  await until(async () => (await context.repository.find(id))?.compressionState !== 'compressing')
  // The row says so just before the rest of it is done.
  await context.compressor.cancel(id)
}

/** The steps that an operation takes, in their order. */
async function stepsOf (t: Test, { prepare, run }: Operation): Promise<string[]> {
  const steps: string[] = []
  let listening = false
  const parts = await openParts(t, await temporaryFolder(t), new ScriptedHost(), async (step) => { if (listening) steps.push(step) })
  await prepare(parts)
  listening = true
  await run(parts)
  return steps
}

/** A server that hangs for ever at one step of the operation; what there is then. */
async function diedAt (t: Test, { prepare, run }: Operation, index: number): Promise<Parts> {
  let count: number | undefined
  let die = (): void => {}
  const dead = new Promise<void>((resolve) => { die = resolve })
  // Until the end of the test, when what hangs must not keep it from ending.
  let end = (): void => {}
  const killed = new Promise<never>((_resolve, reject) => { end = () => { reject(new Error('the server was killed here')) } })
  killed.catch(() => {})
  const onStep: OnStep = async () => {
    if (count === undefined || count++ < index) return
    die()
    await killed
  }
  const host = new ScriptedHost()
  const parts = await openParts(t, await temporaryFolder(t), host, onStep)
  t.teardown(end)
  await prepare(parts)
  count = 0
  await Promise.race([dead, run(parts)])
  return parts
}

for (const [name, operation] of Object.entries(operations)) {
  t.test(`${name}, cut off anywhere`, async (t) => {
    const steps = await stepsOf(t, operation)
    t.ok(steps.length >= 8, `it has ${steps.length} steps`)
    for (const [index, step] of steps.entries()) {
      await t.test(`${index + 1}: ${step}`, async (t) => {
        const { folder, host } = await diedAt(t, operation, index)
        const next = await openParts(t, folder, host)
        await recover(next.context)
        const all = await next.context.repository.all()
        for (const { id, compression } of all) {
          await settled(next, id)
          t.match(await next.context.repository.find(id), { status: 'ready', compressionState: compression === null ? 'none' : 'compressed' })
          t.same(await names(next, id), [compression === null ? 'memory' : 'memory.tar.zst', 'overlay.ext4', 'state'])
          t.equal(await next.content(id), CONTENT)
        }
        t.same(await names(next), all.map(({ id }) => id))
        t.same([...host.held], all.map(({ id }) => `snapshot:${id}`))
        // Whatever became of it, the next one of that name can be made as soon as it is gone.
        for (const { id } of all) await remove(next.context, id)
        t.match(await create(next.context, 'web', { kind: 'Standby', name: 'one' }), { status: 'ready' })
      })
    }
  })
}

for (const step of ['images.hold', 'files.make', 'copies.capture', 'files.sync', 'files.measure', 'repository.complete']) {
  for (const when of ['before', 'after']) {
    t.test(`a create that fails ${when} ${step} leaves nothing`, async (t) => {
      const host = new ScriptedHost()
      const parts = await openParts(t, await temporaryFolder(t), host, async (now) => {
        if (now === `${when} ${step}`) throw Object.assign(new Error('the disk is full'), { code: 'ENOSPC' })
      })
      await t.rejects(create(parts.context, 'web', { kind: 'Standby', name: 'one' }), { code: 'insufficient_resources' })
      t.same(await parts.context.repository.all(), [])
      t.same(await names(parts), [])
      t.same([...host.held], [])
    })
  }
}

t.test('a create that fails while the database does too leaves what was stored, or what the next server removes', async (t) => {
  for (const stored of [true, false]) {
    let down = false
    const folder = await temporaryFolder(t)
    const host = new ScriptedHost()
    const parts = await openParts(t, folder, host, async (step) => {
      if (step === `${stored ? 'after' : 'before'} repository.complete`) down = true
      if (down && step.includes(' repository.')) throw new Error('the database is gone')
    })
    await t.rejects(create(parts.context, 'web', { kind: 'Standby' }), /neither stored nor given up/)
    const next = await openParts(t, folder, host)
    await recover(next.context)
    const left = await next.context.repository.all()
    t.equal(left.length, stored ? 1 : 0)
    for (const { id } of left) t.equal(await next.content(id), CONTENT)
    t.same(await names(next), left.map(({ id }) => id))
  }
})

t.test('a compression that fails says why, and the memory stays as it is', async (t) => {
  for (const [error, reason] of [
    [Object.assign(new Error('x'), { code: 'ENOSPC' }), /disk of the data folder is full/],
    [new Error('/secret/path'), /the log of the server says why/]
  ] as const) {
    const parts = await openParts(t, await temporaryFolder(t), new ScriptedHost(), async (step) => { if (step === 'before commands.run setpriv') throw error })
    const { id } = await create(parts.context, 'web', { kind: 'Standby', compression: zstd })
    await settled(parts, id)
    t.match(await parts.context.repository.find(id), { compressionState: 'error', compressionError: reason, compressedBytes: null })
    t.same(await names(parts, id), ['memory', 'overlay.ext4', 'state'])
    t.equal(await parts.content(id), CONTENT)
  }
})

t.test('a machine that is made while memory is being compressed does not wait for that, and the raw memory stays until it is made', async (t) => {
  let go = (): void => {}
  const gate = new Promise<void>((resolve) => { go = resolve })
  const parts = await openParts(t, await temporaryFolder(t), new ScriptedHost(), async (step) => { if (step === 'before files.finishCompression') await gate })
  const { id } = await create(parts.context, 'web', { kind: 'Standby', compression: zstd })
  // Readers come before the swap, which then waits for them.
  let release = (): void => {}
  const reading = new Promise<void>((resolve) => { release = resolve })
  const reader = parts.context.locks.share(id, async () => { await reading })
  t.equal(await fork(parts.context, id, { name: 'x' }), CONTENT)
  go()
  for (let turns = 0; turns < 20; turns++) await parts.context.repository.all()
  t.ok((await names(parts, id)).includes('memory'))
  release()
  await reader
  await settled(parts, id)
  t.same(await names(parts, id), ['memory.tar.zst', 'overlay.ext4', 'state'])
  t.equal(await fork(parts.context, id, { name: 'x' }), CONTENT)
})

t.test('what is no snapshot is left alone, and one that has lost files does not stop the server', async (t) => {
  const folder = await temporaryFolder(t)
  const host = new ScriptedHost()
  const parts = await openParts(t, folder, host)
  const { id: lost } = await create(parts.context, 'web', { kind: 'Standby' })
  const { id: half } = await create(parts.context, 'web', { kind: 'Standby' })
  const { id: kept } = await create(parts.context, 'web', { kind: 'Standby' })
  await rm(join(parts.context.files.folder, lost), { recursive: true })
  await rm(join(parts.context.files.folder, half, 'memory'))
  await mkdir(join(parts.context.files.folder, 'somebody-else'))
  const next = await openParts(t, folder, host)
  await recover(next.context)
  t.same(await names(next), [half, kept, 'somebody-else'].sort())
  t.equal(await next.content(kept), CONTENT)
  await remove(next.context, lost)
  await remove(next.context, half)
  t.same(await names(next), [kept, 'somebody-else'].sort())
})

for (const step of ['after repository.insert', 'before images.release', 'before repository.remove']) {
  t.test(`a create that fails as the database goes away ${step} is taken back later, and its name is free`, async (t) => {
    let isAway = true
    const failing = new Set(['before copies.capture', step])
    const { context, host } = await openParts(t, await temporaryFolder(t), new ScriptedHost(), async (each) => { if (isAway && failing.has(each)) throw new Error('Connection lost') })
    await t.rejects(create(context, 'web', { kind: 'Standby', name: 'one' }), /Connection lost/)
    isAway = false
    await until(async () => await create(context, 'web', { kind: 'Standby', name: 'one' }).then(() => true, () => false))
    await until(async () => (await context.repository.all()).length === 1 && host.held.size === 1)
  })
}
