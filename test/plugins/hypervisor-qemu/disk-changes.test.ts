// What a guest writes to a disk is told by a QEMU without a guest, whose own monitor writes.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, open } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { connectUnix, listenUnix } from '../../../core/process/unix-socket.ts'
import { openQmp, type QmpClient } from '../../../plugins/hypervisor-qemu/client.ts'
import { DiskChanges } from '../../../plugins/hypervisor-qemu/disk-changes.ts'
import { openBitmap } from '../../../plugins/hypervisor-qemu/nbd.ts'
import { testFolder } from '../../helpers/folder.ts'

const CLUSTER = 65_536
const DISK_BYTES = 10 * 2 ** 30

async function start (t: Test): Promise<{ readonly qmp: QmpClient, readonly folder: string, readonly reconnect: () => Promise<QmpClient>, readonly write: (offset: number, bytes: number) => Promise<void> }> {
  const folder = testFolder(t, {})
  await chmod(folder, 0o700)
  const disk = await open(join(folder, 'disk'), 'w')
  await disk.truncate(DISK_BYTES)
  await disk.close()
  const child = spawn('qemu-system-x86_64', [
    '-nodefaults', '-no-user-config', '-display', 'none', '-S', '-m', '32M', '-qmp', 'unix:qmp.sock,server=on,wait=off',
    '-blockdev', JSON.stringify({ driver: 'raw', 'node-name': 'disk-overlay', file: { driver: 'file', filename: 'disk' } }),
    '-device', 'virtio-blk-pci,drive=disk-overlay,id=blk-overlay'
  ], { cwd: folder, stdio: 'ignore' })
  t.teardown(async () => {
    if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit')
  })
  const reconnect = async (): Promise<QmpClient> => {
    for (;;) {
      const socket = await connectUnix(folder, 'qmp.sock').catch(() => undefined)
      if (socket !== undefined) return await openQmp(socket, 20_000)
      await sleep(10)
    }
  }
  const qmp = await reconnect()
  t.teardown(() => { qmp.close() })
  return {
    qmp, folder, reconnect,
    async write (offset, bytes) {
      const answer = await qmp.execute('human-monitor-command', { 'command-line': `qemu-io -d /machine/peripheral/blk-overlay/virtio-backend "write -P 7 ${offset} ${bytes}"` })
      if (answer !== '') throw new Error(String(answer))
    }
  }
}

t.test('the parts of a disk that were written since are told, and no others', async (t) => {
  const { qmp, folder, write } = await start(t)
  await write(0, CLUSTER)
  const changes = await new DiskChanges(folder, 60_000).track(qmp, 'overlay')
  await write(5 * CLUSTER + 512, 512)
  await write(7 * CLUSTER, 2 * CLUSTER)
  await write(DISK_BYTES - 4096, 4096)
  const expected = [{ offset: 5 * CLUSTER, bytes: CLUSTER }, { offset: 7 * CLUSTER, bytes: 2 * CLUSTER }, { offset: DISK_BYTES - CLUSTER, bytes: CLUSTER }]
  t.same(await changes.ranges(), expected)
  await changes.end()
  t.notMatch(JSON.stringify(await qmp.execute('query-named-block-nodes')), 'berth-copy')
})

t.test('a disk can be tracked again, also when the server that did so before has died', async (t) => {
  const { qmp, folder, reconnect, write } = await start(t)
  await new DiskChanges(folder, 60_000).track(qmp, 'overlay')
  await write(0, 512)
  qmp.close()
  const next = await reconnect()
  t.teardown(() => { next.close() })
  const changes = new DiskChanges(folder, 60_000)
  for (const what of ['again', 'and once more']) {
    const tracked = await changes.track(next, 'overlay')
    t.same(await tracked.ranges(), [], what)
    await tracked.end()
  }
  await t.rejects(changes.track(next, 'none'), { code: 'vm_spec_invalid' })
})

t.test('a server that answers nonsense is not believed', async (t) => {
  const greeting = Buffer.concat([Buffer.from('NBDMAGICIHAVEOPT'), Buffer.from([0, 3])])
  const reply = (option: number, type: number, data = Buffer.alloc(0)): Buffer => {
    const head = Buffer.alloc(20)
    head.writeBigUInt64BE(0x3e889045565a9n)
    head.writeUInt32BE(option, 8)
    head.writeUInt32BE(type, 12)
    head.writeUInt32BE(data.length, 16)
    return Buffer.concat([head, data])
  }
  const sized = (bytes: bigint): Buffer => {
    const facts = Buffer.alloc(12)
    facts.writeBigUInt64BE(bytes, 2)
    return Buffer.concat([greeting, reply(8, 1), reply(10, 4), reply(10, 1), reply(7, 3, facts), reply(7, 1)])
  }
  /** a piece of the answer to a question for ranges */
  const chunk = (flags: number, type: number, data: Buffer = Buffer.alloc(0)): Buffer => {
    const head = Buffer.alloc(20)
    head.writeUInt32BE(0x668e33ef)
    head.writeUInt16BE(flags, 4)
    head.writeUInt16BE(type, 6)
    head.writeUInt32BE(data.length, 16)
    return Buffer.concat([head, data])
  }
  const list = (...lengths: readonly number[]): Buffer => Buffer.concat([0, ...lengths.flatMap((length) => [length, 1])].map((number) => {
    const word = Buffer.alloc(4)
    word.writeUInt32BE(number)
    return word
  }))
  const tooLong = reply(8, 1)
  tooLong.writeUInt32BE(2 ** 31, 16)
  const cases: ReadonlyArray<readonly [what: string, bytes: Buffer, message: RegExp]> = [
    ['another protocol', Buffer.alloc(18), /another protocol/],
    ['an answer to another option', Buffer.concat([greeting, reply(7, 1)]), /something else/],
    ['an answer that is too long', Buffer.concat([greeting, tooLong]), /too much/],
    ['a refusal', Buffer.concat([greeting, reply(8, 2 ** 31 + 1, Buffer.from('no'))]), /refuses option 8 \(1\): no/],
    ['no such bitmap', Buffer.concat([greeting, reply(8, 1), reply(10, 1)]), /does not know the bitmap/],
    ['no size', Buffer.concat([greeting, reply(8, 1), reply(10, 4), reply(10, 1), reply(7, 1)]), /size of the disk/],
    ['more and more', Buffer.concat([greeting, ...Array.from({ length: 20 }, () => reply(8, 3))]), /without end/],
    ['an end', greeting.subarray(0, 5), /closed/],
    ['a disk of 2^62 bytes', sized(2n ** 62n), /size of the disk/],
    ['ranges of a byte', Buffer.concat([sized(BigInt(DISK_BYTES)), chunk(1, 5, list(1))]), /makes no sense/],
    ['one list after the other', Buffer.concat([sized(BigInt(DISK_BYTES)), chunk(0, 5, list(CLUSTER)), chunk(0, 5, list(CLUSTER))]), /more than one list/],
    ['nothing, and more to come', Buffer.concat([sized(BigInt(DISK_BYTES)), chunk(0, 0)]), /more than one list/],
    ['a range at a time, for ever', sized(2n ** 52n), /within 1000 ms/]
  ]
  for (const [what, bytes, message] of cases) {
    const folder = testFolder(t, {})
    const server = createServer((socket: Socket) => {
      socket.on('error', () => {})
      if (what.endsWith('for ever')) socket.on('data', () => setTimeout(() => { if (socket.writable) socket.write(chunk(1, 5, list(CLUSTER))) }, 5))
      if (what === 'an end') socket.end(bytes)
      else socket.write(bytes)
    })
    await listenUnix(server, folder, 's')
    const asked = async (): Promise<void> => {
      const bitmap = await openBitmap(await connectUnix(folder, 's'), { exportName: 'x', bitmap: 'b', granularityBytes: CLUSTER, timeoutMs: 1000 })
      await bitmap.ranges().finally(() => { bitmap.close() })
    }
    await t.rejects(asked(), { code: 'nbd_failed', message }, what)
    server.close()
  }
})
