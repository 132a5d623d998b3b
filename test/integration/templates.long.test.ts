// Machines made of templates: each a machine of its own, whichever way it came up.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { processesIn } from '../../setup/server/leftovers.ts'
import { shell } from '../helpers/counter.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { createShell, lines, runScript, waitFor } from '../helpers/machine.ts'
import { figure } from '../helpers/metrics.ts'
import { startTestServer, type TestServer } from '../helpers/server.ts'
import { eventually } from '../helpers/eventually.ts'

const server = await startTestServer(t, { plugins: { instances: { config: { templates: { enabled: true, spares: 2, maxSpares: 2, quiet: '100ms' } } } } })
const image = await push(server, await busyboxImage(), 'templates/busybox:latest')
const other = await push(server, await busyboxImage({ Env: ['PATH=/bin', 'OTHER=yes'] }), 'templates/other:latest')

const has = async (name: 'templates' | 'spares', count: number): Promise<boolean> => await eventually(`${count} ${name}`, async () => await figure(server, `berth_instances_${name}`) === count)
const wayOf = async (server: TestServer, id: string): Promise<string> => /create: ([^:]*):/.exec((await lines(server, id, { source: 'hypeman' })).join('\n'))?.[1] ?? ''

const vms = async (): Promise<unknown[]> => (await processesIn(server.dataDir)).filter(({ command }) => command.includes('qemu-system'))

interface Seen { readonly id: string, readonly way: string, readonly facts: readonly string[], readonly clockError: number }

/** What a machine is, as its program sees it from its first moment on. */
async function make (name: string, from: string): Promise<Seen> {
  const { id } = await createShell(server, from, 'cat /proc/sys/kernel/random/boot_id /etc/machine-id; head -c 16 /dev/random | md5sum; hostname; sleep 1000', { name, env: { NAME: name } })
  await waitFor(server, id, 'Running')
  await eventually('its output', async () => (await lines(server, id)).length >= 4)
  const asked = Date.now() / 1000
  const clock = Number((await shell(server, id, 'date +%s')).trim())
  return { id, way: await wayOf(server, id), facts: await lines(server, id), clockError: Math.max(Math.floor(asked) - clock, clock - Math.ceil(Date.now() / 1000), 0) }
}

t.test('machines of one template have nothing in common that is a machine\'s own', { timeout: 900_000 }, async (t) => {
  const first = await make('first', image)
  t.equal(first.way, 'by a boot')
  await has('spares', 2)
  const [one, two] = await Promise.all([make('one', image), make('two', other)])
  const three = await make('three', image)
  t.equal(one.way, 'from a spare VM')
  t.equal(two.way, 'from a spare VM')
  t.match(three.way, /^from a (template|spare VM)$/)
  const all = [first, one, two, three]
  for (const column of [0, 1, 2]) t.equal(new Set(all.map(({ facts }) => facts[column])).size, 4, `${['boot id', 'machine id', 'randomness'][column]}`)
  t.strictSame(all.map(({ facts }) => facts[3]), ['first', 'one', 'two', 'three'])
  for (const { clockError } of all) t.ok(clockError <= 1, 'its clock is right')
  t.equal((await shell(server, two.id, 'echo $OTHER')).trim(), 'yes', 'it has the root of its own image')
  t.equal((await shell(server, one.id, 'echo $OTHER')).trim(), '')
  t.equal((await shell(server, one.id, 'echo $NAME > /file; sync; cat /file; df -m / | tail -n 1 | awk \'{ print ($2 > 200 && $2 < 260) }\'')).trim(), 'one\n1', 'and a disk of its own size')
  const sizes = await Promise.all(all.map(async ({ id }) => (await shell(server, id, 'cat /sys/block/vda/size /sys/block/vdb/size')).trim().split('\n')))
  t.strictSame([sizes[1], sizes[3]], [sizes[0], sizes[0]], 'its devices are as large as those of a machine that has booted')
  t.ok(Number(sizes[2]?.[0]) < 2 ** 30, 'also that of another image')
  const listed = await server.sdk.instances.list()
  t.strictSame(listed.map(({ name }) => name).sort(), ['first', 'one', 'three', 'two'])
  await goesOn(t, one)
  for (const { id } of all) await server.sdk.instances.delete(id)
})

/** It is an instance like any other. */
async function goesOn (t: Test, { id, facts }: Seen): Promise<void> {
  await server.sdk.instances.standby(id)
  await server.sdk.instances.restore(id)
  t.equal((await shell(server, id, 'cat /proc/sys/kernel/random/boot_id /file')).trim(), `${facts[0]}\none`)
  await server.sdk.instances.stop(id)
  await server.sdk.instances.start(id, {})
  await waitFor(server, id, 'Running')
  t.equal((await shell(server, id, 'cat /file')).trim(), 'one')
}

t.test('a machine made of a template ends and reports like any other, with an agent or without', { timeout: 900_000 }, async (t) => {
  await has('spares', 2)
  const ended = await runScript(server, image, 'echo said; exit 7')
  t.match(ended, { output: ['said'], instance: { state: 'Stopped', exit_code: 7 } })
  await has('spares', 2)
  const alone = await runScript(server, image, 'echo said; exit 8', { skip_guest_agent: true })
  t.match(alone, { output: ['said'], instance: { state: 'Stopped', exit_code: 8 } })
  t.equal(await figure(server, 'berth_instances_created_total{way="boot"}'), 1)
})

t.test('a crash of the server leaves nothing of what it kept ready, and templates outlive it', { timeout: 900_000 }, async (t) => {
  await has('spares', 2)
  await server.kill9()
  t.equal((await vms()).length, 2, 'the VMs are still there')
  await server.restart()
  t.equal((await vms()).length, 0)
  t.strictSame(await readdir(join(server.dataDir, 'instances')), [])
  const { id } = await createShell(server, image, 'sleep 1000', { name: 'after' })
  t.equal(await wayOf(server, id), 'from a template')
  await waitFor(server, id, 'Running')
  await server.sdk.instances.delete(id)
})

t.test('a server that is stopped while it makes a template is soon done, and leaves nothing', { timeout: 900_000 }, async (t) => {
  const { id } = await createShell(server, image, 'sleep 1000', { name: 'bigger', size: '192MB' })
  await waitFor(server, id, 'Running')
  await eventually('a template in the making', async () => (await readdir(join(server.dataDir, 'templates'))).some(name => name.startsWith('.making-')))
  await server.sdk.instances.delete(id)
  const began = Date.now()
  await server.stop()
  t.ok(Date.now() - began < 10_000, `stopped after ${Date.now() - began} ms`)
  t.strictSame(await readdir(join(server.dataDir, 'instances')), [])
  t.equal((await readdir(join(server.dataDir, 'templates'))).length, 2, 'the whole template, and the root disk')
  await server.restart()
})
