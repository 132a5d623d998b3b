// One machine's life through the API, each thing once, with every part real: what a system has to have for Berth shows here within a minute or two.
// Run by journey.test.ts in a network namespace of its own; where that is not allowed, without a network, and the step that needs one says so.
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { cpToInstance } from '@onkernel/hypeman/lib/cp'
import t, { type Test } from 'tap'
import { missingPrivileges } from '../../../plugins/networking/privileges.ts'
import { copyOut } from '../../helpers/copy-out.ts'
import { shell } from '../../helpers/counter.ts'
import { testFolder } from '../../helpers/folder.ts'
import { createShell, follow, runToEnd, waitFor } from '../../helpers/machine.ts'
import { startTestServer, type TestServer } from '../../helpers/server.ts'
import { BUILDER, pushImages } from '../builds/egress-images.ts'
import { archive, follow as followBuild, submit } from '../builds/scene.ts'
import { ORIGINS } from '../egress/origins/contract.ts'
import { valuesOf } from '../egress/origins/host.ts'
import { openWorld, type World } from '../egress/vm.ts'

const NAME = 'traveller'
const HOTPLUG_MB = 128
/** a program whose memory and whose output tell whether it is still the same one */
const PROGRAM = 'head -c 16 /dev/urandom | sha256sum > /dev/shm/nonce; n=0; while true; do n=$((n+1)); echo "count $n"; sleep 0.2; done'
const PLUGINS = { resources: {}, builds: { config: { builderImage: BUILDER, vcpus: 1, memory: '1GB', disk: '4GB' } } }

const withoutNetwork = missingPrivileges()
const world: World | undefined = withoutNetwork === undefined ? await openWorld(t, PLUGINS) : undefined
const server: TestServer = world?.server ?? await startTestServer(t, { plugins: PLUGINS })
await pushImages(server)
const image = `${new URL(server.url).host}/bases/curl:latest`
/** what the machine keeps in its memory alone */
let nonce = ''

const steps: Readonly<Record<string, (t: Test) => Promise<void>>> = {
  'a machine is created, prints, and runs commands': create,
  'files go in and come out': copy,
  'its memory goes to disk and comes back, with memory that was plugged in': sleepAndWake,
  'it is forked while it runs': fork,
  'a snapshot of it makes another machine after it is gone': snapshot,
  'a volume comes to it while it runs, and another machine finds what it wrote': volume,
  'an image is built of a Dockerfile, and a machine runs it': build
}
for (const [name, run] of Object.entries(steps)) await t.test(name, { timeout: 300_000 }, run)
await t.test('a request carries a credential that the machine does not have', { timeout: 300_000, skip: withoutNetwork ?? false }, request)

async function create (t: Test): Promise<void> {
  const { id } = await createShell(server, image, PROGRAM, { name: NAME, hotplug_size: `${HOTPLUG_MB}MB` })
  t.match(await waitFor(server, id, 'Running'), { name: NAME, hotplug_size: `${HOTPLUG_MB}MB` })
  t.match(await follow(server, id, (line) => line === 'count 3'), ['count 1', 'count 2', 'count 3'])
  nonce = await nonceOf(NAME)
  t.match(nonce, /^[0-9a-f]{64}/)
  t.equal(await shell(server, NAME, 'echo "$((6 * 7))"; id -u'), '42\n0\n')
  t.ok(await memoryOf(NAME) > HOTPLUG_MB, 'it has the memory that was plugged in')
}

async function copy (t: Test): Promise<void> {
  const here = testFolder(t, { in: randomBytes(300_000).toString('base64') })
  const config = { baseURL: server.url, apiKey: server.key }
  await cpToInstance(config, { instanceId: NAME, srcPath: join(here, 'in'), dstPath: '/root/file' })
  await shell(server, NAME, 'cp /root/file /root/copy')
  await copyOut(config, NAME, '/root/copy', join(here, 'out'))
  t.ok((await readFile(join(here, 'out'))).equals(await readFile(join(here, 'in'))))
}

async function sleepAndWake (t: Test): Promise<void> {
  const megabytes = await memoryOf(NAME)
  // The second image is made of memory that is in a file already.
  for (const round of ['first', 'second']) {
    t.match(await server.sdk.instances.standby(NAME), { state: 'Standby', has_snapshot: true }, `${round} standby`)
    t.match(await server.sdk.instances.restore(NAME), { state: 'Running', has_snapshot: false })
    t.equal(await nonceOf(NAME), nonce, `${round} restore: the program goes on`)
    t.equal(await memoryOf(NAME), megabytes)
  }
  t.equal(await shell(server, NAME, 'wc -c < /root/file'), '400000\n')
}

async function fork (t: Test): Promise<void> {
  const twin = await server.sdk.instances.fork(NAME, { name: 'twin', from_running: true })
  t.equal(await nonceOf(twin.id), nonce, 'with its memory')
  await shell(server, twin.id, 'echo other > /root/file')
  t.equal(await shell(server, NAME, 'wc -c < /root/file'), '400000\n', 'their disks are apart')
  await server.sdk.instances.delete(twin.id)
}

async function snapshot (t: Test): Promise<void> {
  const { id } = await server.sdk.instances.snapshots.create(NAME, { kind: 'Standby', name: 'moment' })
  await server.sdk.instances.delete(NAME)
  const copy = await server.sdk.snapshots.fork(id, { name: NAME, target_state: 'Running' })
  t.equal(await nonceOf(copy.id), nonce)
  await server.sdk.snapshots.delete(id)
  t.equal(await shell(server, NAME, 'wc -c < /root/file'), '400000\n', 'it needs the snapshot no longer')
}

async function volume (t: Test): Promise<void> {
  const { id } = await server.sdk.volumes.create({ name: 'luggage', size_gb: 1 })
  await server.sdk.instances.volumes.attach(id, { id: NAME, mount_path: '/luggage' })
  await shell(server, NAME, 'echo kept > /luggage/word; sync')
  await server.sdk.instances.volumes.detach(id, { id: NAME })
  const { output } = await runToEnd(server, await createShell(server, image, 'cat /luggage/word', { volumes: [{ volume_id: id, mount_path: '/luggage', readonly: true }] }))
  t.same(output, ['kept'])
  await server.sdk.volumes.delete(id)
  await server.sdk.instances.delete(NAME)
}

async function build (t: Test): Promise<void> {
  const word = randomBytes(8).toString('hex')
  const id = await submit(server, archive({ Dockerfile: `FROM bases/curl\nRUN echo ${word} > /built\nCMD ["cat", "/built"]\n` }), { image_name: 'built', network_mode: 'isolated' })
  const built = await followBuild(server, id)
  t.equal(built.status, 'ready', built.error ?? '')
  const { instance, output } = await runToEnd(server, await server.sdk.instances.create({ name: 'built', image: 'localhost/built', size: '128MB', vcpus: 1 }))
  t.same(output, [word])
  t.equal(instance.exit_code, 0)
}

async function request (t: Test): Promise<void> {
  if (world === undefined) throw new Error('it is skipped without a network')
  const secret = world.secrets.REAL_KEY
  const { id } = await createShell(server, image, 'sleep 100000', {
    env: { REAL_KEY: secret },
    credentials: { API_KEY: { source: { env: 'REAL_KEY' }, inject: [{ hosts: [ORIGINS.api], as: { header: 'Authorization', format: 'Bearer ${value}' } }] } },
    network: { enabled: true, egress: { enabled: true, enforcement: { mode: 'all' } } }
  })
  await waitFor(server, id, 'Running')
  t.notMatch(await shell(server, id, 'env'), secret)
  await shell(server, id, `curl -sS --fail --max-time 60 https://${ORIGINS.api}/echo`)
  const seen = (await world.outside.seen()).filter(({ url }) => url === '/echo')
  t.same(seen.map(({ headers }) => valuesOf(headers, 'authorization')), [[`Bearer ${secret}`]])
  await server.sdk.instances.delete(id)
}

async function nonceOf (id: string): Promise<string> {
  return await shell(server, id, 'cat /dev/shm/nonce')
}

/** What its kernel counts as its own, in MB. */
async function memoryOf (id: string): Promise<number> {
  const kilobytes = /^MemTotal: +(\d+)/m.exec(await shell(server, id, 'cat /proc/meminfo'))?.[1]
  return Math.round(Number(kilobytes) / 1024)
}
