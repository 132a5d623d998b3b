// Snapshots through the official SDK: machines at one moment, apart from any machine.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type Hypeman from '@onkernel/hypeman'
import t from 'tap'
import { look as lookAt, shell, startCounter, type Seen } from '../helpers/counter.ts'
import { failureOf } from '../helpers/failure.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { waitFor } from '../helpers/machine.ts'
import { startTestServer } from '../helpers/server.ts'
import { compressed } from '../helpers/snapshots.ts'
import { eventually } from '../helpers/eventually.ts'

const server = await startTestServer(t)
const image = await push(server, await busyboxImage(), 'snapshots/busybox:latest')
const look = async (id: string, above?: number): Promise<Seen> => await lookAt(server, id, above)
const read = async (id: string, path: string): Promise<string> => (await shell(server, id, `cat ${path} 2>/dev/null || echo none`)).trim()

t.test('a snapshot outlives its source, and two machines made of it are machines of their own', { timeout: 900_000 }, async (t) => {
  const id = await startCounter(server, image, 'snapshot-source', 'echo first > /root/file')
  const before = await look(id)
  const snapshot = await server.sdk.instances.snapshots.create(id, { kind: 'Standby', name: 'one', tags: { role: 'test' } })
  t.match(snapshot, { name: 'one', kind: 'Standby', source_instance_id: id, source_instance_name: 'snapshot-source', source_hypervisor: 'qemu', tags: { role: 'test' }, compression_state: 'none' })
  t.ok(snapshot.size_bytes > 10_000_000, 'it has a size')
  t.match(await server.sdk.instances.get(id), { state: 'Running' })
  const after = await look(id, before.counter)
  t.equal(after.nonce, before.nonce)
  t.ok(after.counter > before.counter, 'its source counts on')
  t.match(await failureOf(server.sdk.instances.snapshots.create(id, { kind: 'Standby', name: 'one' })), { status: 409, error: { code: 'name_conflict' } })
  t.match(await server.sdk.snapshots.list({ source_instance_id: id, kind: 'Standby', name: 'one', tags: { role: 'test' } }), [{ id: snapshot.id }])
  t.strictSame(await server.sdk.snapshots.list({ name: 'two' }), [])
  await server.sdk.instances.delete(id)

  t.match(await server.sdk.snapshots.get(snapshot.id), { id: snapshot.id })
  const forks = await Promise.all(['snapshot-a', 'snapshot-b'].map(async name => await server.sdk.snapshots.fork(snapshot.id, { name })))
  t.match(forks.map(({ state }) => state), ['Running', 'Running'])
  const [one, two] = await Promise.all(forks.map(async fork => await look(fork.id)))
  for (const seen of [one, two]) {
    t.equal(seen?.nonce, before.nonce)
    t.ok((seen?.counter ?? 0) >= before.counter, 'it goes on counting')
    t.ok((seen?.clockError ?? 2) <= 1, 'its clock is right')
  }
  t.strictSame([one?.hostname, two?.hostname], ['snapshot-a', 'snapshot-b'])
  t.not(one?.random, two?.random)
  t.not(one?.bootId, two?.bootId)
  t.notOk(forks.some(fork => fork.id === id))
  for (const fork of forks) await server.sdk.instances.delete(fork.id)
  await server.sdk.snapshots.delete(snapshot.id)
  t.match(await failureOf(server.sdk.snapshots.get(snapshot.id)), { status: 404 })
  t.strictSame(await readdir(join(server.dataDir, 'snapshots')), [], 'its files are gone')
})

t.test('memory and disk are of one moment, in standby, fork and snapshot', { timeout: 900_000 }, async (t) => {
  const id = await startCounter(server, image, 'moment', 'echo first > /root/file')
  const early = await server.sdk.instances.snapshots.create(id, { kind: 'Standby' })
  await shell(server, id, 'echo late > /root/late')
  const late = await look(id)
  await server.sdk.instances.standby(id)
  const image2 = await server.sdk.instances.snapshots.create(id, { kind: 'Standby' })
  const fork = await server.sdk.instances.fork(id, { name: 'moment-fork', target_state: 'Running' })
  t.equal(await read(fork.id, '/root/late'), 'late', 'what was written and not synced is in the fork')
  await server.sdk.instances.restore(id)
  t.equal(await read(id, '/root/late'), 'late', 'and in what was restored')
  t.ok((await look(id, late.counter)).counter > late.counter)
  await server.sdk.instances.delete(fork.id)

  const past = await server.sdk.snapshots.fork(early.id, { name: 'moment-past' })
  t.equal(await read(past.id, '/root/late'), 'none', 'and absent from what was taken before')
  t.equal(await read(past.id, '/root/file'), 'first')
  t.ok((await look(past.id)).counter < (await look(id)).counter)
  await server.sdk.instances.delete(past.id)

  const left = (await look(id)).counter
  await server.sdk.instances.standby(id)
  const restored = await server.sdk.instances.snapshots.restore(early.id, { id })
  t.match(restored, { id, name: 'moment', state: 'Running' })
  t.equal(await read(id, '/root/late'), 'none', 'a snapshot restored in place takes its source back')
  t.ok((await look(id)).counter < left)
  await server.sdk.instances.standby(id)
  t.match(await server.sdk.instances.snapshots.restore(image2.id, { id, target_state: 'Standby' }), { state: 'Standby' })
  t.match(await server.sdk.instances.restore(id), { state: 'Running' })
  t.equal(await read(id, '/root/late'), 'late', 'and forth')
  t.equal((await look(id)).hostname, 'moment')
  await server.sdk.instances.delete(id)
  for (const snapshot of [early, image2]) await server.sdk.snapshots.delete(snapshot.id)
})

t.test('a snapshot of a stopped machine is a disk, which boots', { timeout: 900_000 }, async (t) => {
  const id = await startCounter(server, image, 'disk-source', '[ -e /root/file ] || echo first > /root/file')
  const before = await look(id)
  t.match(await failureOf(server.sdk.instances.snapshots.create(id, { kind: 'Stopped' })), { status: 409, error: { code: 'invalid_state' } })
  await server.sdk.instances.stop(id)
  const snapshot = await server.sdk.instances.snapshots.create(id, { kind: 'Stopped', name: 'disk' })
  t.match(snapshot, { kind: 'Stopped' })
  await server.sdk.instances.delete(id)
  const fork = await server.sdk.snapshots.fork(snapshot.id, { name: 'disk-fork' })
  t.equal(fork.state, 'Stopped')
  await server.sdk.instances.start(fork.id, {})
  await waitFor(server, fork.id, 'Running')
  await shell(server, fork.id, 'while [ ! -e /dev/shm/state ]; do sleep 0.1; done')
  t.equal(await read(fork.id, '/root/file'), 'first')
  t.not((await look(fork.id)).nonce, before.nonce)
  const running = await server.sdk.snapshots.fork(snapshot.id, { name: 'disk-running', target_state: 'Running', target_hypervisor: 'qemu' })
  await waitFor(server, running.id, 'Running')
  for (const gone of [fork.id, running.id]) await server.sdk.instances.delete(gone)
  await server.sdk.snapshots.delete(snapshot.id)
})

for (const compression of [{ enabled: true, algorithm: 'zstd', level: 3 }, { enabled: true, algorithm: 'lz4', level: 0 }] as const) {
  t.test(`nonce and counter outlive standby, kill -9, compression with ${compression.algorithm}, fork, and a snapshot whose source is gone`, { timeout: 900_000 }, async (t) => {
    const { algorithm } = compression
    const id = await startCounter(server, image, `journey-${algorithm}`)
    const first = await look(id)
    let counter = first.counter
    const goesOn = async (machine: string, after: string): Promise<void> => {
      const seen = await look(machine, counter)
      t.equal(seen.nonce, first.nonce, `the same nonce after ${after}`)
      t.ok(seen.counter > counter, `the counter went on after ${after}`)
      t.ok(seen.clockError <= 1, `the clock is right after ${after}`)
      counter = seen.counter
    }
    await server.sdk.instances.standby(id, { compression })
    await compressed(server, id, algorithm)
    await server.kill9()
    await server.restart()
    t.match(await server.sdk.instances.restore(id), { state: 'Running' })
    await goesOn(id, 'compression, kill -9 and restore')

    await server.sdk.instances.standby(id, { compression })
    t.match(await server.sdk.instances.restore(id), { state: 'Running' }, 'a restore does not wait for a compression')
    await goesOn(id, 'a restore during compression')

    const snapshot = await server.sdk.instances.snapshots.create(id, { kind: 'Standby', compression })
    await server.sdk.instances.standby(id, { compression })
    await compressed(server, id, algorithm)
    const fork = await server.sdk.instances.fork(id, { name: `journey-${algorithm}-fork`, target_state: 'Running' })
    await server.sdk.instances.delete(id)
    await goesOn(fork.id, 'a fork of a compressed image')
    await server.sdk.instances.delete(fork.id)

    const done = await waitForCompression(snapshot.id)
    t.match(done, { compression_state: 'compressed', compression: { enabled: true, algorithm } })
    t.ok((done.compressed_size_bytes ?? Infinity) < (done.uncompressed_size_bytes ?? 0), 'it is smaller')
    counter = first.counter
    const late = await server.sdk.snapshots.fork(snapshot.id, { name: `journey-${algorithm}-late` })
    await goesOn(late.id, 'snapshot, deletion of its source, compression and fork')
    await server.sdk.instances.delete(late.id)
    await server.sdk.snapshots.delete(snapshot.id)
  })
}

async function waitForCompression (id: string): Promise<Hypeman.Snapshot> {
  return await eventually('the compression has ended', async () => {
    const snapshot = await server.sdk.snapshots.get(id)
    return snapshot.compression_state !== 'compressing' && snapshot
  })
}

t.test('a schedule is stored, changed, read and deleted', async (t) => {
  const id = await startCounter(server, image, 'scheduled')
  t.match(await failureOf(server.sdk.instances.snapshotSchedule.get(id)), { status: 404 })
  const made = await server.sdk.instances.snapshotSchedule.update(id, { interval: '1h', retention: { max_count: 2 }, name_prefix: 'nightly', metadata: { team: 'a' } })
  t.match(made, { instance_id: id, interval: '1h', retention: { max_count: 2 }, name_prefix: 'nightly', metadata: { team: 'a' } })
  const changed = await server.sdk.instances.snapshotSchedule.update(id, { interval: '1h', retention: { max_age: '24h' } })
  t.equal(changed.next_run_at, made.next_run_at, 'another retention leaves the next run where it was')
  t.match(await server.sdk.instances.snapshotSchedule.get(id), { retention: { max_age: '24h' } })
  await server.sdk.instances.snapshotSchedule.delete(id)
  t.match(await failureOf(server.sdk.instances.snapshotSchedule.get(id)), { status: 404 })
  await server.sdk.instances.delete(id)
})
