// Real machines that share the memory file of what they were made of, with a QEMU that can: each is a machine of its own, an image holds only what differs, and what they were made of may go.
import { existsSync } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { look, shell, startCounter } from '../helpers/counter.ts'
import { eventually } from '../helpers/eventually.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { lines, waitFor } from '../helpers/machine.ts'
import { figure } from '../helpers/metrics.ts'
import { newerQemu, WITHOUT_NEWER_QEMU } from '../helpers/newer-qemu.ts'
import { startTestServer, type TestServer } from '../helpers/server.ts'
import { vmmOf } from '../helpers/vmm.ts'

const MIB = 2 ** 20
const binary = await newerQemu(t)
if (binary === undefined) {
  t.pass('skipped', { skip: WITHOUT_NEWER_QEMU })
} else {
  await main(binary)
}

async function main (binary: string): Promise<void> {
  const server = await startTestServer(t, {
    plugins: { 'hypervisor-qemu': { config: { binary } }, instances: { config: { templates: { enabled: true, spares: 0, quiet: '100ms' }, hotStandby: { enabled: false } } } }
  })
  const image = await push(server, await busyboxImage(), 'private/busybox:latest')
  const noNetwork = { network: { enabled: false } }
  const folderOf = (id: string): string => join(server.dataDir, 'instances', id)
  /** Whether the VMM has its memory in common with others. */
  const isShared = async (t: Test, id: string): Promise<void> => {
    const maps = (await readFile(`/proc/${await vmmOf(server, id)}/maps`, 'utf8')).split('\n').filter((line) => line.endsWith('/memory') || line.endsWith('/memory (deleted)'))
    t.match(maps, [/ rw-p /], 'its memory is a private mapping')
    t.notOk(existsSync(join(folderOf(id), 'memory')), 'and no file of its own')
  }

  await t.test('a clone goes to standby with what differs from its template, and goes on after the template and the server have gone', { timeout: 300_000 }, async (t) => {
    const first = await startCounter(server, image, 'first', ':', noNetwork)
    await eventually('the template', async () => await figure(server, 'berth_instances_templates') === 1)
    await server.sdk.instances.delete(first)
    const id = await startCounter(server, image, 'clone', ':', noNetwork)
    t.match((await lines(server, id, { source: 'hypeman' })).join('\n'), /create: from a template/)
    await isShared(t, id)
    await shell(server, id, 'head -c 3000000 /dev/urandom > /dev/shm/held')
    const sum = await shell(server, id, 'md5sum < /dev/shm/held')
    let before = await look(server, id)
    for (const round of ['first', 'second']) {
      t.match(await server.sdk.instances.standby(id), { state: 'Standby', has_snapshot: true })
      const image = JSON.parse(await readFile(join(folderOf(id), 'standby/image.json'), 'utf8'))
      t.match(image, { onBase: { changes: true }, image: { changes: true } })
      const { size } = await stat(join(folderOf(id), 'standby/changes'))
      t.ok(size > 3 * MIB && size < 32 * MIB, `what differs are ${Math.round(size / MIB)} MiB`)
      t.same((await readdir(folderOf(id))).filter((name) => ['memory', 'base'].includes(name)), ['base'])
      if (round === 'first') {
        for (const { id: key } of await templates(server)) await server.api.call('DELETE', `/templates/${key}`)
        await server.kill9()
        await server.restart()
      }
      t.match(await server.sdk.instances.restore(id), { state: 'Running' })
      const after = await look(server, id, before.counter)
      t.equal(after.nonce, before.nonce)
      t.ok(after.counter > before.counter && after.clockError <= 1)
      t.equal(await shell(server, id, 'md5sum < /dev/shm/held'), sum)
      await isShared(t, id)
      before = after
    }
    // Forks share what their source shares.
    const fork = await server.sdk.instances.fork(id, { name: 'fork', from_running: true, target_state: 'Running' })
    await isShared(t, fork.id)
    const there = await look(server, fork.id, before.counter)
    t.match(there, { nonce: before.nonce, hostname: 'fork' })
    t.equal(await shell(server, fork.id, 'md5sum < /dev/shm/held'), sum)
    await shell(server, fork.id, 'rm /dev/shm/held')
    t.equal(await shell(server, id, 'md5sum < /dev/shm/held'), sum, 'what one changes the other does not see')
    await server.sdk.instances.standby(fork.id)
    const resting = await server.sdk.instances.snapshots.create(fork.id, { kind: 'Standby', name: 'of-what-rests' })
    const sleeper = await server.sdk.instances.fork(fork.id, { name: 'sleeper', target_state: 'Standby' })
    await server.sdk.instances.delete(fork.id)
    await server.sdk.instances.restore(sleeper.id)
    t.match(await look(server, sleeper.id, there.counter), { nonce: before.nonce, hostname: 'sleeper' }, 'a fork in standby outlives its source')
    await server.sdk.instances.delete(sleeper.id)
    // A snapshot is whole, whatever it was taken of.
    const restored = await server.sdk.snapshots.fork(resting.id, { name: 'of-snapshot', target_state: 'Running' })
    t.match(await look(server, restored.id, there.counter), { nonce: before.nonce, hostname: 'of-snapshot' })
    await server.sdk.instances.delete(restored.id)
    const said = await lines(server, id, { source: 'vmm' })
    t.ok(said.filter((line) => line.includes('qemu-system')).length < 100, `QEMU does not fill its log: ${said.filter((line) => line.includes('qemu-system')).length} lines, such as ${said.find((line) => line.includes('qemu-system')) ?? 'none'}`)
  })

  await t.test('forks of a snapshot share its memory, stop and start like any other, and outlive it', { timeout: 300_000 }, async (t) => {
    const [source] = await server.sdk.instances.list()
    const held = await shell(server, source?.id ?? '', 'md5sum < /dev/shm/held')
    const snapshot = await server.sdk.instances.snapshots.create(source?.id ?? '', { kind: 'Standby', name: 'of-all' })
    const { ino } = await stat(join(server.dataDir, 'snapshots', snapshot.id, 'memory'))
    const forks = await Promise.all(['one', 'two'].map(async (name) => await server.sdk.snapshots.fork(snapshot.id, { name, target_state: 'Running' })))
    await server.sdk.snapshots.delete(snapshot.id)
    for (const { id } of forks) {
      await isShared(t, id)
      t.equal((await stat(join(folderOf(id), 'base/memory'))).ino, ino)
      await server.sdk.instances.standby(id)
      await server.sdk.instances.restore(id)
      t.equal(await shell(server, id, 'md5sum < /dev/shm/held'), held)
    }
    const id = forks[0]?.id ?? ''
    await server.sdk.instances.stop(id)
    t.notOk(existsSync(join(folderOf(id), 'base')), 'a stopped instance has no base')
    await server.sdk.instances.start(id, {})
    await waitFor(server, id, 'Running')
    for (const { id } of await server.sdk.instances.list()) await server.sdk.instances.delete(id)
  })
}

async function templates (server: TestServer): Promise<ReadonlyArray<{ readonly id: string }>> {
  const answer = await server.api.call('GET', '/templates')
  return Array.isArray(answer) ? answer : []
}
