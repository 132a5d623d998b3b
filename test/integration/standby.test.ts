// A machine in standby: no process, no time, and then it goes on in the middle of its sentence.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { processesIn } from '../../setup/server/leftovers.ts'
import { runCommand } from '../helpers/exec.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { createShell, follow, lines, waitFor } from '../helpers/machine.ts'
import { startTestServer } from '../helpers/server.ts'

const server = await startTestServer(t)
const image = await push(server, await busyboxImage(), 'standby/busybox:latest')

/** Keeps a nonce and a counter in memory only, shows them in a tmpfs, and prints the counter with the uptime. */
const program = 'read nonce < /proc/sys/kernel/random/uuid; n=0; while true; do n=$((n+1)); echo "$nonce $n" > /dev/shm/now; mv /dev/shm/now /dev/shm/state; echo "$n $(cut -d" " -f1 /proc/uptime)"; sleep 0.1; done'

interface Seen { readonly nonce: string, readonly counter: number, readonly uptime: number, readonly clock: number, readonly bootId: string }

async function look (id: string): Promise<Seen> {
  const { stdout, stderr, exitCode } = await runCommand(server, id, { command: ['/bin/sh', '-c', 'cat /dev/shm/state; date +%s.%N; cat /proc/uptime /proc/sys/kernel/random/boot_id'] })
  if (exitCode !== 0) throw new Error(stderr)
  const [state = '', clock = '', uptime = '', bootId = ''] = stdout.split('\n')
  const [nonce = '', counter = ''] = state.split(' ')
  return { nonce, counter: Number(counter), uptime: Number(uptime.split(' ')[0]), clock: Number(clock.split('.')[0]), bootId }
}

async function counting (name: string): Promise<string> {
  const { id } = await createShell(server, image, program, { name })
  await waitFor(server, id, 'Running')
  await follow(server, id, line => line.startsWith('3 '))
  return id
}

t.test('memory, tmpfs, processes and logs go on after standby and restore, twice, with the right time', { timeout: 300_000 }, async t => {
  const id = await counting('standby-counter')
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
    const after = await look(id)
    t.equal(after.nonce, first.nonce, `round ${round}: it is the same program`)
    t.equal(after.bootId, first.bootId)
    t.ok(after.counter > before.counter, 'its counter went on')
    t.ok(after.uptime > before.uptime && after.uptime < before.uptime + 3, `the uptime goes on (${before.uptime} to ${after.uptime})`)
    t.ok(Math.abs(after.clock - Date.now() / 1000) < 2, 'the clock is right')
    before = await look(id)
  }
  const counts = (await follow(server, id, line => Number(line.split(' ')[0]) > before.counter + 5)).map(line => Number(line.split(' ')[0]))
  t.strictSame(counts, counts.map((_count, index) => index + 1), 'the log has no gap')
  await server.sdk.instances.stop(id)
  t.match(await server.sdk.instances.get(id), { state: 'Stopped', has_snapshot: false })
  await server.sdk.instances.delete(id)
})

t.test('a written and unsynced file, and the standby itself, outlive kill -9 of the server', { timeout: 300_000 }, async t => {
  const id = await counting('standby-crash')
  await runCommand(server, id, { command: ['/bin/sh', '-c', 'echo precious > /root/file'] })
  const before = await look(id)
  await server.sdk.instances.standby(id)
  await server.kill9()
  await server.restart()
  t.match(await server.sdk.instances.get(id), { state: 'Standby', has_snapshot: true })
  await server.sdk.instances.restore(id)
  const after = await look(id)
  t.equal(after.nonce, before.nonce)
  t.ok(after.counter > before.counter)
  t.match(await runCommand(server, id, { command: ['cat', '/root/file'] }), { stdout: 'precious\n' })
  await server.kill9()
  await server.restart()
  await waitFor(server, id, 'Running')
  t.equal((await look(id)).nonce, before.nonce, 'a restored machine is taken over like any other')
  await server.sdk.instances.delete(id)
})

t.test('an image that QEMU cannot use stays, and says why', { timeout: 300_000 }, async t => {
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

t.test('the operations log says how long each step took', async t => {
  const id = await counting('standby-log')
  await server.sdk.instances.standby(id)
  await server.sdk.instances.restore(id)
  const log = await readFile(join(server.dataDir, 'instances', id, 'operations.log'), 'utf8')
  t.match(log, /standby: done in \d+ ms/)
  t.match(log, /restore: done in \d+ ms/)
  t.comment(log)
  await server.sdk.instances.delete(id)
})
