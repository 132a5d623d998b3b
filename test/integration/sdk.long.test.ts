// The official SDK against the real server with real machines: every call of it that is served.
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import Hypeman from '@onkernel/hypeman'
import { cpToInstance } from '@onkernel/hypeman/lib/cp'
import t from 'tap'
import { copyOut } from '../helpers/copy-out.ts'
import { failureOf } from '../helpers/failure.ts'
import { testFolder } from '../helpers/folder.ts'
import { busyboxImage, makeImage, push } from '../helpers/images.ts'
import { createShell, follow, lines, waitFor } from '../helpers/machine.ts'
import { startTestServer } from '../helpers/server.ts'

const server = await startTestServer(t)
const { sdk } = server
const reference = await push(server, await busyboxImage({ Env: ['PATH=/bin', 'FLAVOUR=plain'], WorkingDir: '/tmp' }), 'sdk/busybox:latest')

t.test('health needs no key', async (t) => {
  t.strictSame(await new Hypeman({ baseURL: server.url, apiKey: 'no such key' }).health.check(), { status: 'ok' })
})

t.test('a wrong key is refused', async (t) => {
  t.match(await failureOf(new Hypeman({ baseURL: server.url, apiKey: 'no such key', maxRetries: 0 }).images.list()), { status: 401 })
})

t.test('an image is listed, read, made again without harm, and deleted', async (t) => {
  const image = await sdk.images.get(reference)
  t.match(image, { name: reference, status: 'ready', digest: /^sha256:[0-9a-f]{64}$/, cmd: ['/bin/sh'], env: { FLAVOUR: 'plain' }, working_dir: '/tmp' })
  t.ok((image.size_bytes ?? 0) > 100_000, 'it has a size')
  const again = await sdk.images.create({ name: reference, tags: { team: 'a' } })
  t.equal(again.digest, image.digest)
  const other = await push(server, makeImage([[{ path: 'marker', content: 'other' }]], { Cmd: ['/marker'] }), 'sdk/other:v1')
  t.ok((await sdk.images.list()).some(({ name }) => name === other))
  await sdk.images.delete(other)
  t.notOk((await sdk.images.list()).some(({ name }) => name === other))
  t.match(await failureOf(sdk.images.get(other)), { status: 404 })
})

t.test('an instance lives through create, wait, logs, stat, stats, stop, start and delete', async (t) => {
  const created = await createShell(server, reference, 'echo one; echo two; while true; do echo tick; sleep 1; done', { name: 'sdk-life', tags: { role: 'test' }, env: { GREETING: 'hello' } })
  t.match(created, { name: 'sdk-life', image: reference, vcpus: 1, tags: { role: 'test' }, env: { GREETING: 'hello' }, hypervisor: 'qemu' })
  await waitFor(server, created.id, 'Running')

  t.match(await sdk.instances.get('sdk-life'), { id: created.id, state: 'Running', exit_code: null })
  t.match(await sdk.instances.list({ state: 'Running', tags: { role: 'test' } }), [{ id: created.id }])
  t.strictSame(await sdk.instances.list({ tags: { role: 'other' } }), [])

  const seen = await follow(server, created.id, line => line === 'tick')
  t.strictSame(seen.slice(0, 3), ['one', 'two', 'tick'])

  t.match(await sdk.instances.stat(created.id, { path: '/bin/busybox' }), { exists: true, is_file: true, mode: Number })
  t.match(await sdk.instances.stat(created.id, { path: '/no/such/file' }), { exists: false })
  t.match(await sdk.instances.stat(created.id, { path: '/bin/sh' }), { exists: true, is_symlink: true, link_target: 'busybox' })

  const stats = await sdk.instances.stats(created.id)
  t.match(stats, { instance_id: created.id, instance_name: 'sdk-life', allocated_vcpus: 1, allocated_memory_bytes: 128 * 2 ** 20 })
  t.ok(stats.cpu_seconds > 0 && stats.memory_rss_bytes > 10_000_000 && stats.memory_vms_bytes >= stats.memory_rss_bytes, 'a running machine uses processor and memory')

  const stopped = await sdk.instances.stop(created.id)
  t.equal(stopped.state, 'Stopped')
  t.type(stopped.stopped_at, 'string')
  await sdk.instances.start(created.id, { cmd: ['/bin/sh', '-c', 'echo second run; exit 5'] })
  const ended = await waitFor(server, created.id, 'Stopped')
  t.equal(ended.exit_code, 5)
  t.ok((await lines(server, created.id)).includes('second run'))
  await sdk.instances.delete(created.id)
  t.match(await failureOf(sdk.instances.get(created.id)), { status: 404 })
})

t.test('a name that is taken is a conflict that the SDK does not repeat', async (t) => {
  const first = await createShell(server, reference, 'sleep 600', { name: 'sdk-taken' })
  const patient = new Hypeman({ baseURL: server.url, apiKey: server.key, maxRetries: 3 })
  const started = Date.now()
  t.match(await failureOf(patient.instances.create({ name: 'sdk-taken', image: reference })), { status: 409, error: { code: 'name_conflict' } })
  t.ok(Date.now() - started < 10_000, 'it answers without a pause for another try')
  await sdk.instances.delete(first.id)
})

t.test('cp copies files and folders both ways', async (t) => {
  const here = testFolder(t)
  const instance = await createShell(server, reference, 'sleep 600')
  await waitFor(server, instance.id, 'Running')
  const config = { baseURL: server.url, apiKey: server.key }
  const to = async (srcPath: string, dstPath: string): Promise<void> => await cpToInstance(config, { instanceId: instance.id, srcPath, dstPath })
  const from = async (srcPath: string, dstPath: string): Promise<void> => await copyOut(config, instance.id, srcPath, dstPath)

  // The SDK takes a frame that parses as JSON for a message of the protocol.
  const json = '{"type":"end","final":true,"padding":"x"}'
  await writeFile(join(here, 'tiny.json'), json)
  await to(join(here, 'tiny.json'), '/tmp/tiny.json')
  await from('/tmp/tiny.json', join(here, 'back.json'))
  t.equal(await readFile(join(here, 'back.json'), 'utf8'), json, 'a JSON file arrives as it was')

  const many = join(here, 'many')
  await mkdir(join(many, 'deep'), { recursive: true })
  const sums = new Map<string, string>()
  for (let number = 0; number < 1000; number++) {
    const content = randomBytes(1 + number % 700)
    const name = number % 2 === 0 ? `file-${number}` : `deep/file-${number}`
    sums.set(name, createHash('sha256').update(content).digest('hex'))
    await writeFile(join(many, name), content)
  }
  await to(many, '/tmp/many')
  await from('/tmp/many', join(here, 'many-back'))
  const names = (await readdir(join(here, 'many-back'), { recursive: true })).filter(name => name.includes('file-'))
  t.equal(names.length, 1000, 'a thousand files come back')
  const wrong: string[] = []
  for (const name of names) {
    const content = await readFile(join(here, 'many-back', name))
    if (createHash('sha256').update(content).digest('hex') !== sums.get(name.replace(/^many\//, ''))) wrong.push(name)
  }
  t.strictSame(wrong, [], 'with what they held')
  await sdk.instances.delete(instance.id)
})
