// A machine in standby: no process, no time, and then it goes on in the middle of its sentence.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { processesIn } from '../../setup/server/leftovers.ts'
import { look as lookAt, shell, startCounter, type Seen } from '../helpers/counter.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { follow, lines, waitFor } from '../helpers/machine.ts'
import { startTestServer } from '../helpers/server.ts'

const server = await startTestServer(t)
const image = await push(server, await busyboxImage(), 'standby/busybox:latest')

const counting = async (name: string): Promise<string> => await startCounter(server, image, name)
const look = async (id: string, above?: number): Promise<Seen> => await lookAt(server, id, above)

t.test('memory, tmpfs, processes and logs go on after standby and restore, twice, with the right time', { timeout: 900_000 }, async (t) => {
  const id = await counting('standby-counter')
  await shell(server, id, 'hostname renamed')
  let lookedAt = Date.now()
  const first = await look(id)
  let before = first
  for (const round of [1, 2]) {
    const sleeping = await server.sdk.instances.standby(id)
    t.match(sleeping, { state: 'Standby', has_snapshot: true })
    t.strictSame((await processesIn(join(server.dataDir, 'instances', id))).map(({ command }) => command), [], 'no VMM is left')
    const printed = (await lines(server, id)).length
    await new Promise(resolve => setTimeout(resolve, 3000))
    t.equal((await lines(server, id)).length, printed, 'nothing runs meanwhile')
    const restored = await server.sdk.instances.restore(id)
    t.match(restored, { state: 'Running', has_snapshot: false })
    const after = await look(id, before.counter)
    const seconds = (Date.now() - lookedAt) / 1000
    t.equal(after.nonce, first.nonce, `round ${round}: it is the same program`)
    t.equal(after.bootId, first.bootId)
    t.equal(after.hostname, 'renamed', 'what its program made of the machine stays')
    t.ok(after.counter > before.counter, 'its counter went on')
    t.ok(after.uptime > before.uptime && after.uptime - before.uptime < seconds - 3, `the uptime goes on without the time of the standby (${before.uptime} to ${after.uptime} within ${seconds} s)`)
    t.ok(after.clockError <= 1, 'the clock is right')
    lookedAt = Date.now()
    before = await look(id)
  }
  const counts = (await follow(server, id, line => Number(line.split(' ')[0]) > before.counter + 5)).map(line => Number(line.split(' ')[0]))
  t.strictSame(counts, counts.map((_count, index) => index + 1), 'the log has no gap')
  await server.sdk.instances.stop(id)
  t.match(await server.sdk.instances.get(id), { state: 'Stopped', has_snapshot: false })
  await server.sdk.instances.delete(id)
})

t.test('a written and unsynced file, and the standby itself, outlive kill -9 of the server', { timeout: 900_000 }, async (t) => {
  const id = await counting('standby-crash')
  await shell(server, id, 'echo precious > /root/file')
  const before = await look(id)
  await server.sdk.instances.standby(id)
  await server.kill9()
  await server.restart()
  t.match(await server.sdk.instances.get(id), { state: 'Standby', has_snapshot: true })
  await server.sdk.instances.restore(id)
  const after = await look(id, before.counter)
  t.equal(after.nonce, before.nonce)
  t.ok(after.counter > before.counter)
  t.equal(await shell(server, id, 'cat /root/file'), 'precious\n')
  await server.kill9()
  await server.restart()
  await waitFor(server, id, 'Running')
  t.equal((await look(id)).nonce, before.nonce, 'a restored machine is taken over like any other')
  await server.sdk.instances.delete(id)
})

t.test('an image that QEMU cannot use stays, and says why', { timeout: 900_000 }, async (t) => {
  const id = await counting('standby-refused')
  await server.sdk.instances.standby(id)
  await server.stop()
  await server.restart({ plugins: { 'hypervisor-qemu': { config: { cpuModel: 'max' } } } })
  await t.rejects(server.sdk.instances.restore(id), { status: 409, message: /stays in Standby.*cpu/ })
  t.match(await server.sdk.instances.get(id), { state: 'Standby', has_snapshot: true })
  await server.stop()
  await server.restart({ plugins: {} })
  t.match(await server.sdk.instances.restore(id), { state: 'Running' })
  await look(id)
  await server.sdk.instances.delete(id)
})

t.test('the operations log says how long each step took', async (t) => {
  const id = await counting('standby-log')
  await server.sdk.instances.standby(id)
  await server.sdk.instances.restore(id)
  const log = await readFile(join(server.dataDir, 'instances', id, 'operations.log'), 'utf8')
  t.match(log, /standby: done in \d+ ms/)
  t.match(log, /restore: done in \d+ ms/)
  t.comment(log)
  await server.sdk.instances.delete(id)
})
