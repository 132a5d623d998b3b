// Volumes in real machines: what was synced outlives everything, one writer or many readers, writes that stay an instance's own, and disks that come and go while it runs.
import { randomBytes } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { DELETED } from '../../setup/structure/deleted.ts'
import { shell } from '../helpers/counter.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { createShell, waitFor } from '../helpers/machine.ts'
import { startTestServer, type TestServer } from '../helpers/server.ts'
import { tar } from '../helpers/tar.ts'
import { vmmOf } from '../helpers/vmm.ts'

/** an answer that the SDK throws */
async function refusal (work: Promise<unknown>): Promise<{ status: number, code: string, message: string }> {
  try {
    await work
  } catch (error) {
    if (error instanceof Error && 'status' in error && 'error' in error) {
      const { code, message }: { code: string, message: string } = Object(error.error)
      return { status: Number(error.status), code, message }
    }
    throw error
  }
  throw new Error('it was not refused')
}

t.setTimeout(1_400_000)
const server = await startTestServer(t)
const image = await push(server, await busyboxImage(), 'volumes/busybox:latest')

async function running (server: TestServer, name: string, volumes: Array<{ volume_id: string, mount_path: string, readonly?: boolean, overlay?: boolean, overlay_size?: string }> = []): Promise<string> {
  const { id } = await createShell(server, image, 'sleep 100000', { name, volumes })
  await waitFor(server, id, 'Running')
  return id
}

const tests: Record<string, (t: Test) => Promise<void>> = {
  'what was synced is there after the VMM and the server were killed': durable,
  'two read it, none writes it meanwhile, and what one writes to its overlay is its own': shared,
  'a volume comes to a machine that runs, and goes again': hot,
  'volumes inside one another are there in either order': nested,
  'attached volumes are there after standby, and a fork reads what its source reads': moves
}
for (const [name, run] of Object.entries(tests)) await t.test(name, { timeout: 900_000 }, run)

async function durable (t: Test): Promise<void> {
  const { id: volume } = await server.sdk.volumes.create({ name: 'durable', size_gb: 1 })
  const word = randomBytes(8).toString('hex')
  const writer = await running(server, 'writer', [{ volume_id: 'durable', mount_path: '/data' }])
  t.same((await server.sdk.volumes.get(volume)).attachments, [{ instance_id: writer, mount_path: '/data', readonly: false }])
  t.match(await shell(server, writer, 'grep /data /proc/mounts'), /^\/dev\/sda \/data ext4 rw/)
  await shell(server, writer, `mkdir /data/folder && echo ${word} | dd of=/data/folder/word conv=fsync && dd if=/dev/urandom of=/data/more bs=64k count=20`)
  const vmm = await vmmOf(server, writer)
  process.kill(vmm, 'SIGKILL')
  await server.kill9()
  await server.restart()
  await waitFor(server, writer, 'Stopped')
  t.equal((await server.sdk.volumes.get(volume)).attachments?.length, 1, 'it stays attached')
  t.equal((await refusal(server.sdk.volumes.delete(volume))).status, 409)
  await server.sdk.instances.delete(writer)
  t.same((await server.sdk.volumes.get(volume)).attachments, [])
  // A reader does not play back the journal, so somebody must have.
  const reader = await running(server, 'reader', [{ volume_id: volume, mount_path: '/data', readonly: true }])
  t.equal((await shell(server, reader, 'cat /data/folder/word')).trim(), word)
  t.match(await shell(server, reader, 'touch /data/x 2>&1 || true'), /Read-only/)
  await server.sdk.instances.delete(reader)
  const again = await running(server, 'again', [{ volume_id: volume, mount_path: '/data' }])
  t.equal((await shell(server, again, 'cat /data/folder/word')).trim(), word)
  await server.sdk.instances.delete(again)
  await server.sdk.volumes.delete(volume)
}

async function shared (t: Test): Promise<void> {
  const archive = gzipSync(tar([{ path: 'hello', content: 'hello\n' }, { path: 'etc', type: 'dir' }]))
  const { id: volume } = await server.sdk.volumes.createFromArchive(archive, { name: 'shared', size_gb: 1 })
  const mount = { volume_id: volume, mount_path: '/data', readonly: true }
  const one = await running(server, 'one', [mount])
  const overlaid = { ...mount, overlay: true, overlay_size: '64MB' }
  const two = await running(server, 'two', [overlaid])
  t.equal((await server.sdk.volumes.get(volume)).attachments?.length, 2)
  const refused = await refusal(createShell(server, image, 'sleep 1', { name: 'three', volumes: [{ volume_id: volume, mount_path: '/data' }] }))
  t.match(refused, { status: 409, code: 'volume_in_use', message: /read/ })
  t.notOk((await server.sdk.instances.list()).some(({ name }) => name === 'three'))
  for (const id of [one, two]) t.equal(await shell(server, id, 'cat /data/hello'), 'hello\n')
  await shell(server, two, 'echo mine > /data/hello && echo new > /data/new && rm -r /data/etc && sync')
  const three = await running(server, 'three', [overlaid])
  t.equal(await shell(server, three, 'cat /data/hello; ls /data'), 'hello\netc\nhello\nlost+found\n')
  t.equal(await shell(server, one, 'cat /data/hello; ls /data'), 'hello\netc\nhello\nlost+found\n')
  await server.sdk.instances.stop(two)
  await server.sdk.instances.start(two, {})
  await waitFor(server, two, 'Running')
  t.equal(await shell(server, two, 'cat /data/hello; ls /data'), 'mine\nhello\nlost+found\nnew\n', 'what was written to the overlay stays')
  t.match(await server.sdk.instances.get(two), { volumes: [{ volume_id: volume, mount_path: '/data', readonly: true, overlay: true }] })
  for (const id of [one, two, three]) await server.sdk.instances.delete(id)
  await server.sdk.volumes.delete(volume)
}

async function hot (t: Test): Promise<void> {
  const { id: volume } = await server.sdk.volumes.create({ name: 'hot', size_gb: 1, tags: { speed: 'high' } })
  const machine = await running(server, 'hot')
  let began = performance.now()
  t.match(await server.sdk.instances.volumes.attach('hot', { id: machine, mount_path: '/data/deep' }), { volumes: [{ volume_id: volume, mount_path: '/data/deep', readonly: false }] })
  const attachedMs = performance.now() - began
  // Under a second on a machine that does nothing else; how busy this one is nobody knows.
  t.ok(attachedMs < 10_000, `attached in ${Math.round(attachedMs)} ms`)
  await shell(server, machine, 'echo kept > /data/deep/file')
  t.equal((await refusal(server.sdk.instances.volumes.attach(volume, { id: machine, mount_path: '/other' }))).status, 409)
  const busy = shell(server, machine, 'cd /data/deep && touch /tmp/in && while [ ! -e /tmp/out ]; do sleep 0.1; done; cd /')
  await shell(server, machine, 'while [ ! -e /tmp/in ]; do sleep 0.1; done')
  t.match(await refusal(server.sdk.instances.volumes.detach(volume, { id: machine })), { status: 409, code: 'volume_busy', message: /in use in the guest/ })
  t.equal(await shell(server, machine, 'cat /data/deep/file'), 'kept\n', 'and it stays as it was')
  await shell(server, machine, 'touch /tmp/out')
  await busy
  began = performance.now()
  t.match(await server.sdk.instances.volumes.detach(volume, { id: machine }), { volumes: [] })
  t.comment(`detached in ${Math.round(performance.now() - began)} ms`)
  t.equal(await shell(server, machine, 'ls /data/deep; ls -d /sys/block/sd* 2>/dev/null; true'), '')
  t.same((await server.sdk.volumes.get(volume)).attachments, [])
  const other = await running(server, 'other', [{ volume_id: volume, mount_path: '/mnt' }])
  t.equal(await shell(server, other, 'cat /mnt/file'), 'kept\n', 'what was written is there for the next')
  await server.sdk.instances.volumes.detach('hot', { id: other })
  t.equal(await shell(server, other, 'ls /mnt'), '', 'one that was there from the start goes too')
  for (let round = 0; round < 3; round++) {
    await server.sdk.instances.volumes.attach(volume, { id: machine, mount_path: '/data/deep', readonly: round === 1 })
    t.equal(await shell(server, machine, 'cat /data/deep/file'), 'kept\n')
    await server.sdk.instances.volumes.detach(volume, { id: machine })
  }
  await server.sdk.instances.stop(other)
  await server.sdk.instances.volumes.attach(volume, { id: other, mount_path: '/later' })
  await server.sdk.instances.start(other, {})
  await waitFor(server, other, 'Running')
  t.equal(await shell(server, other, 'cat /later/file'), 'kept\n', 'attached to a stopped one, it is there at the next start')
  for (const id of [machine, other]) await server.sdk.instances.delete(id)
  await server.sdk.volumes.delete(volume)
}

async function nested (t: Test): Promise<void> {
  const outer = await server.sdk.volumes.create({ name: 'outer', size_gb: 1 })
  const inner = await server.sdk.volumes.create({ name: 'inner', size_gb: 1 })
  const mounts = [{ volume_id: inner.id, mount_path: '/data/logs' }, { volume_id: outer.id, mount_path: '/data' }]
  for (const [index, volumes] of [mounts, mounts.toReversed()].entries()) {
    const machine = await running(server, `nested-${index}`, volumes)
    await shell(server, machine, `echo inner-${index} > /data/logs/word && echo outer-${index} > /data/word && sync`)
    await server.sdk.instances.delete(machine)
    for (const [volume, word] of [[inner, `inner-${index}`], [outer, `outer-${index}`]] as const) {
      const reader = await running(server, 'reader', [{ volume_id: volume.id, mount_path: '/alone', readonly: true }])
      t.equal((await shell(server, reader, 'cat /alone/word')).trim(), word)
      await server.sdk.instances.delete(reader)
    }
  }
  const machine = await running(server, 'nested', [{ volume_id: inner.id, mount_path: '/data/logs' }])
  t.match(await refusal(server.sdk.instances.volumes.attach(outer.id, { id: machine, mount_path: '/data' })), { status: 400, message: /\/data\/logs/ })
  t.equal((await shell(server, machine, 'cat /data/logs/word')).trim(), 'inner-1')
  await server.sdk.instances.stop(machine)
  await server.sdk.instances.volumes.attach(outer.id, { id: machine, mount_path: '/data' })
  await server.sdk.instances.start(machine, {})
  await waitFor(server, machine, 'Running')
  t.equal(await shell(server, machine, 'cat /data/logs/word /data/word'), 'inner-1\nouter-1\n', 'a guest that boots has both')
  await server.sdk.instances.delete(machine)
  for (const { id } of [outer, inner]) await server.sdk.volumes.delete(id)
}

async function moves (t: Test): Promise<void> {
  const writable = await server.sdk.volumes.create({ name: 'writable', size_gb: 1 })
  const library = await server.sdk.volumes.createFromArchive(gzipSync(tar([{ path: 'book', content: 'words\n' }])), { name: 'library', size_gb: 1 })
  const source = await running(server, 'source', [{ volume_id: library.id, mount_path: '/lib1', readonly: true, overlay: true, overlay_size: '64MB' }])
  await shell(server, source, 'echo note > /lib1/note')
  await server.sdk.instances.volumes.attach(writable.id, { id: source, mount_path: '/work' })
  await shell(server, source, 'echo before > /work/file')
  await server.sdk.instances.standby(source)
  t.equal((await refusal(server.sdk.instances.volumes.detach(writable.id, { id: source }))).status, 409)
  t.match(await refusal(server.sdk.instances.fork(source, { name: 'no-fork' })), { status: 501, code: 'not_supported', message: /writable|may write/ })
  await server.sdk.instances.restore(source)
  t.equal(await shell(server, source, 'cat /work/file /lib1/book /lib1/note; echo after >> /work/file; sync'), 'before\nwords\nnote\n')
  t.equal((await refusal(server.sdk.instances.fork(source, { name: 'no-fork', from_running: true }))).status, 501)
  await server.sdk.instances.volumes.detach(writable.id, { id: source })
  const fork = await server.sdk.instances.fork(source, { name: 'fork', from_running: true })
  t.equal(await shell(server, fork.id, 'cat /lib1/book /lib1/note; echo other > /lib1/note'), 'words\nnote\n', 'it has a copy of what was written')
  t.equal(await shell(server, source, 'cat /lib1/note'), 'note\n')
  t.equal((await server.sdk.volumes.get(library.id)).attachments?.length, 2)
  const snapshot = DELETED.includes('snapshots') ? undefined : await server.sdk.instances.snapshots.create(source, { kind: 'Standby', name: 'one' })
  for (const id of [source, fork.id]) await server.sdk.instances.delete(id)
  if (snapshot !== undefined) await forksOf(t, snapshot.id, library.id)
  for (const { id } of [writable, library]) await server.sdk.volumes.delete(id)
  t.same(await server.sdk.volumes.list(), [])
}

/** Of a snapshot of an instance that had the volume, and had written to its overlay. Deletes the snapshot. */
async function forksOf (t: Test, snapshot: string, volume: string): Promise<void> {
  const copy = await server.sdk.snapshots.fork(snapshot, { name: 'copy' })
  t.equal(await shell(server, copy.id, 'cat /lib1/book /lib1/note'), 'words\nnote\n')
  await server.sdk.instances.delete(copy.id)
  const changer = await running(server, 'changer', [{ volume_id: volume, mount_path: '/data' }])
  await server.sdk.instances.delete(changer)
  t.match(await refusal(server.sdk.snapshots.fork(snapshot, { name: 'copy' })), { status: 409, code: 'conflict', message: /library/ })
  await server.sdk.snapshots.delete(snapshot)
}
