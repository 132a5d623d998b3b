// A real machine whose VM is kept in standby: nothing of it moves or is reached meanwhile, its guest cannot tell, and what happens to server and VMM costs nothing but the VM.
import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import t, { type Test } from 'tap'
import { createHostCommands } from '../../core/process/run.ts'
import { missingPrivileges } from '../../plugins/networking/privileges.ts'
import { processesIn } from '../../setup/server/leftovers.ts'
import { look, shell, startCounter } from '../helpers/counter.ts'
import { eventually } from '../helpers/eventually.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { lines, waitFor } from '../helpers/machine.ts'
import { figure } from '../helpers/metrics.ts'
import { ownNetwork } from '../helpers/own-network.ts'
import { startTestServer, type TestServer } from '../helpers/server.ts'
import { vmmOf } from '../helpers/vmm.ts'

const commands = createHostCommands()
const { namespace, cidr } = ownNetwork()
const hasNetwork = missingPrivileges() === undefined
const networking = { config: { uplink: 'none', cidr, namespace } }
t.teardown(async () => {
  // Only after a failure: a server that stops in order removes it.
  if (existsSync(`/run/netns/${namespace}`)) await commands.run('ip', ['netns', 'delete', namespace])
})
const server = await startTestServer(t, { plugins: { ...hasNetwork ? { networking } : {}, instances: { config: { hotStandby: { enabled: true } } } } })
const image = await push(server, await busyboxImage(), 'hot/busybox:latest')
const folderOf = (id: string): string => join(server.dataDir, 'instances', id)

/** Content and time of all that a VM can write which its image is made of. */
async function filesOf (id: string): Promise<unknown> {
  return await Promise.all(['memory', 'overlay.ext4', 'standby/state'].map(async (name) => {
    const path = join(folderOf(id), name)
    const hash = createHash('sha256')
    await pipeline(createReadStream(path), hash)
    return [name, hash.digest('hex'), (await stat(path, { bigint: true })).mtimeNs]
  }))
}

const inside = async (...command: string[]): Promise<{ stdout: string, exitCode: number }> => await commands.run('ip', ['netns', 'exec', namespace, ...command], { timeoutMs: 20_000 }).then(({ stdout }) => ({ stdout, exitCode: 0 }), () => ({ stdout: '', exitCode: 1 }))
const answersPing = async (ip: string): Promise<boolean> => (await inside('busybox', 'ping', '-c', '1', '-W', '2', ip)).exitCode === 0

/** Puts it to standby and returns the VMM that stays. */
async function aside (t: Test, server: TestServer, id: string): Promise<number> {
  t.match(await server.sdk.instances.standby(id), { state: 'Standby', has_snapshot: true })
  const pid = await vmmOf(server, id)
  t.match(await server.api.call('GET', `/instances/${id}/stats`), { vm_kept: true, memory_rss_bytes: Number })
  return pid
}

t.test('the same VM goes on after a standby, and while it is paused no byte of its image changes and nothing of it is reached', { timeout: 900_000 }, async (t) => {
  const id = await startCounter(server, image, 'hot')
  const ip = String((await server.sdk.instances.get(id)).network?.ip)
  let before = await look(server, id)
  for (const round of ['first', 'second']) {
    const lookedAt = Date.now()
    const pid = await aside(t, server, id)
    const files = await filesOf(id)
    const printed = (await lines(server, id)).length
    if (hasNetwork) {
      await eventually('its TAP is down', async () => !/state (?:UP|UNKNOWN)/.test((await inside('ip', 'link', 'show', 'type', 'tun')).stdout))
      t.notOk(await answersPing(ip), 'nobody reaches it')
    }
    await new Promise((resolve) => setTimeout(resolve, 3000))
    t.same(await filesOf(id), files, `${round}: memory, disk and state are as they were`)
    t.equal((await lines(server, id)).length, printed, 'nothing runs meanwhile')
    t.match(await server.sdk.instances.restore(id), { state: 'Running', has_snapshot: false })
    t.equal(await vmmOf(server, id), pid, 'it is the same VM')
    const after = await look(server, id, before.counter)
    const seconds = (Date.now() - lookedAt) / 1000
    t.match([after.nonce, after.bootId], [before.nonce, before.bootId])
    t.ok(after.uptime > before.uptime && after.uptime - before.uptime < seconds - 3, `the uptime goes on without the time of the standby (${before.uptime} to ${after.uptime} within ${seconds} s)`)
    t.ok(after.clockError <= 1, 'the clock is right')
    if (hasNetwork) t.ok(await answersPing(ip), 'it is reached again')
    t.notOk(existsSync(join(folderOf(id), 'standby')), 'its image is used up')
    before = after
  }
  t.equal(await figure(server, 'berth_instances_kept_vms'), 0)
  await server.sdk.instances.delete(id)
})

t.test('kill -9 of the server while a VM is kept leaves its image as it was, and the next server ends the VM', { timeout: 900_000 }, async (t) => {
  const id = await startCounter(server, image, 'hot-crash')
  await shell(server, id, 'echo precious > /root/file')
  const before = await look(server, id)
  await aside(t, server, id)
  const files = await filesOf(id)
  await server.kill9()
  await new Promise((resolve) => setTimeout(resolve, 500))
  t.same(await filesOf(id), files, 'the end of its server moves nothing in a VM')
  await server.restart()
  t.same(await processesIn(folderOf(id)), [])
  t.match(await server.sdk.instances.get(id), { state: 'Standby', has_snapshot: true, state_error: null })
  t.match(await server.sdk.instances.restore(id), { state: 'Running' })
  const after = await look(server, id, before.counter)
  t.equal(after.nonce, before.nonce)
  t.equal(await shell(server, id, 'cat /root/file'), 'precious\n')
  await aside(t, server, id)
  t.match(await server.sdk.instances.restore(id), { state: 'Running' }, 'a VM that was restored cold is kept, too')
  await server.kill9()
  await server.restart()
  await waitFor(server, id, 'Running')
  t.equal((await look(server, id)).nonce, before.nonce, 'one that was restored hot is taken over like any other')
  await server.sdk.instances.delete(id)
})

t.test('a VM that is kept and killed costs nothing, and one of an instance that is deleted goes with it', { timeout: 900_000 }, async (t) => {
  const id = await startCounter(server, image, 'hot-killed')
  const before = await look(server, id)
  process.kill(await aside(t, server, id), 'SIGKILL')
  await eventually('its end is seen', async () => await figure(server, 'berth_instances_kept_vms') === 0)
  t.match(await server.sdk.instances.get(id), { state: 'Standby', state_error: null })
  t.match(await server.sdk.instances.restore(id), { state: 'Running' })
  t.equal((await look(server, id, before.counter)).nonce, before.nonce)
  await aside(t, server, id)
  await server.sdk.instances.delete(id)
  t.same(await processesIn(folderOf(id)), [])
  if (hasNetwork) t.equal((await inside('ip', 'link', 'show', 'type', 'tun')).stdout, '')
})
