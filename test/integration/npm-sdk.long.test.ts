// The official npm SDK against the real server with real machines: all of its methods, each answer checked against the types that the SDK declares for it.
import { gzipSync } from 'node:zlib'
import { toFile } from '@onkernel/hypeman'
import t, { type Test } from 'tap'
import { skipWithout } from '../../setup/structure/deleted.ts'
import { eventually } from '../helpers/eventually.ts'
import { failureOf } from '../helpers/failure.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { readSdkModels } from '../helpers/sdk-models.ts'
import { startSdkServer } from '../helpers/sdk-server.ts'
import { watch, type Witness } from '../helpers/sdk-witness.ts'
import { tar } from '../helpers/tar.ts'
import { skipReason } from '../plugins/ingress/stage.ts'

/** methods of SDK 0.28.0 */
const METHODS = 63
/** A host without a card to give away can only refuse these here; devices.long has one, and the SDK there registers it. */
const REFUSED_ONLY = ['devices.create', 'devices.delete', 'devices.retrieve']
const TEAM = { tags: { team: 'a' } }

const models = readSdkModels()
const reason = skipReason() || skipWithout('builds', 'devices', 'pushes', 'resources', 'snapshots', 'volumes')
const archive = (path: string, content: string): Buffer => gzipSync(tar([{ path, content }]))
const ids = (things: readonly { readonly id: string }[]): string[] => things.map(({ id }) => id)

/** The stream is let go of after it. */
async function firstOf<T> (items: AsyncIterable<T>): Promise<T | undefined> {
  const iterator = items[Symbol.asyncIterator]()
  const first = await iterator.next()
  await iterator.return?.()
  return first.done === true ? undefined : first.value
}

t.test('an answer that contradicts its type is found', async (t) => {
  t.equal(models.methods.length, METHODS, `the SDK has ${METHODS} methods`)
  t.same(models.problems('health.check', { status: 'ok' }), [])
  t.match(models.problems('health.check', { status: 'fine' }), [/health\.check\.status is "fine"/])
  t.match(models.problems('ingresses.list', [{ id: 'a', name: 'b', created_at: 'c', rules: [{ match: {}, target: { instance: 'x', port: '1' } }] }]), [/rules\[0\]\.match\.hostname is missing/, /rules\[0\]\.target\.port is "1"/])
  t.match(models.problems('volumes.delete', {}), [/not void/])
})

interface Place { readonly sdk: Witness['sdk'], readonly image: string, readonly port: number, readonly registry: string }

async function everyMethod (t: Test): Promise<void> {
  const { server, port, registry } = await startSdkServer(t)
  const { sdk, answered, refused } = watch(server.sdk, models)
  const place = { sdk, port, registry, image: await push(server, await busyboxImage(), 'npm/busybox:latest') }
  await t.test('the server and its images', async (t) => { await images(t, place) })
  await t.test('an instance with a volume, ingresses, snapshots and a schedule', { timeout: 900_000 }, async (t) => { await instance(t, place) })
  await t.test('builds and builders', { timeout: 300_000 }, async (t) => { await builds(t, place) })
  await t.test('pushes', async (t) => { await pushes(t, place) })
  await t.test('devices', async (t) => { await devices(t, place) })
  await t.test('no method was left out', async (t) => {
    t.strictSame(models.methods.filter((method) => !answered.has(method)), REFUSED_ONLY)
    t.strictSame(REFUSED_ONLY.filter((method) => !refused.has(method)), [])
  })
}

async function images (t: Test, { sdk, image }: Place): Promise<void> {
  t.strictSame(await sdk.health.check(), { status: 'ok' })
  t.ok((await sdk.capabilities.get()).features.includes('instances'))
  await sdk.resources.get()
  t.equal((await sdk.images.get(image)).status, 'ready')
  t.ok((await sdk.images.list()).some(({ name }) => name === image))
  await sdk.images.create({ name: image, ...TEAM })
  const tagged = await sdk.images.tag(image, { target: 'localhost/npm/tagged:v1' })
  await sdk.images.delete(tagged.name)
  t.match(await failureOf(sdk.images.get(tagged.name)), { status: 404 })
}

async function instance (t: Test, place: Place): Promise<void> {
  const { sdk, image } = place
  const volume = await sdk.volumes.create({ name: 'npm-data', size_gb: 1, ...TEAM })
  t.equal((await sdk.volumes.get(volume.id)).name, 'npm-data')
  t.same(ids(await sdk.volumes.list(TEAM)), [volume.id])
  const filled = await sdk.volumes.createFromArchive(archive('file', 'text'), { name: 'npm-filled', size_gb: 1 })
  await sdk.volumes.delete(filled.id)

  const { id } = await sdk.instances.create({ name: 'npm-web', image, size: '128MB', vcpus: 1, overlay_size: '256MB', entrypoint: ['/bin/sh', '-c'], cmd: ['echo ready; while true; do sleep 1; done'], ...TEAM })
  t.equal((await sdk.instances.wait(id, { state: 'Running', timeout: '120s' })).state, 'Running')
  t.equal((await sdk.instances.get(id.slice(0, 12))).id, id)
  t.same(ids(await sdk.instances.list({ state: 'Running', ...TEAM })), [id])
  t.equal(await firstOf(await sdk.instances.logs(id, { follow: true })), 'ready')
  t.match(await sdk.instances.stat(id, { path: '/bin/busybox' }), { exists: true, is_file: true })
  t.equal((await sdk.instances.stats(id)).instance_id, id)
  t.match(await sdk.instances.update(id, { ttl: '2h' }), { id, expires_at: String })
  t.match(await sdk.instances.autoStandby.status(id), { configured: false })
  await sdk.instances.update(id, { auto_standby: { enabled: true, idle_timeout: '30m' } })
  await sdk.instances.autoStandby.hold(id)
  t.match(await sdk.resources.reclaimMemory({ reclaim_bytes: 2 ** 20, dry_run: true }), { requested_reclaim_bytes: 2 ** 20 })
  t.match(await sdk.instances.volumes.attach(volume.id, { id, mount_path: '/data' }), { volumes: [{ mount_path: '/data' }] })
  t.same((await sdk.instances.volumes.detach(volume.id, { id })).volumes ?? [], [])
  await sdk.volumes.delete(volume.id)

  await ingresses(t, place)
  await snapshots(t, place, id)
  t.equal((await sdk.instances.standby(id)).state, 'Standby')
  const fork = await sdk.instances.fork(id, { name: 'npm-fork', target_state: 'Standby' })
  t.match(fork, { name: 'npm-fork', state: 'Standby' })
  t.match((await sdk.instances.restore(id)).state, /Running|Initializing/)
  t.equal((await sdk.instances.stop(id)).state, 'Stopped')
  await sdk.instances.start(id, { cmd: ['exit 7'] })
  await sdk.instances.wait(id, { state: 'Stopped', timeout: '120s' })
  t.equal((await sdk.instances.get(id)).exit_code, 7)
  for (const one of [id, fork.id]) await sdk.instances.delete(one)
  t.match(await failureOf(sdk.instances.get(id)), { status: 404 })
}

async function ingresses (t: Test, { sdk, port }: Place): Promise<void> {
  const made = await sdk.ingresses.create({ name: 'npm-site', rules: [{ match: { hostname: '{instance}.example.com' }, target: { instance: '{instance}', port: 8080 } }], ...TEAM })
  t.match(made, { name: 'npm-site', rules: [{ match: { hostname: '{instance}.example.com', port }, target: { instance: '{instance}', port: 8080 } }], ...TEAM })
  t.same(ids(await sdk.ingresses.list(TEAM)), [made.id])
  t.same(await sdk.ingresses.list({ tags: { team: 'b' } }), [])
  t.equal((await sdk.ingresses.get('npm-site')).id, made.id)
  await sdk.ingresses.delete(made.id)
  t.match(await failureOf(sdk.ingresses.get(made.id)), { status: 404 })
}

async function snapshots (t: Test, { sdk }: Place, instance: string): Promise<void> {
  const made = await sdk.instances.snapshots.create(instance, { kind: 'Standby', name: 'npm-first' })
  t.equal((await sdk.snapshots.get(made.id)).name, 'npm-first')
  t.same(ids(await sdk.snapshots.list({ source_instance_id: instance })), [made.id])
  const copy = await sdk.snapshots.fork(made.id, { name: 'npm-copy', target_state: 'Standby' })
  await sdk.instances.delete(copy.id)
  await sdk.instances.standby(instance)
  t.match((await sdk.instances.snapshots.restore(made.id, { id: instance, target_state: 'Running' })).state, /Running|Initializing/)
  await sdk.instances.wait(instance, { state: 'Running', timeout: '120s' })
  await sdk.snapshots.delete(made.id)
  await sdk.instances.snapshotSchedule.update(instance, { interval: '1h', retention: { max_count: 1 } })
  t.equal((await sdk.instances.snapshotSchedule.get(instance)).instance_id, instance)
  await sdk.instances.snapshotSchedule.delete(instance)
}

async function builds (t: Test, { sdk }: Place): Promise<void> {
  const builder = await sdk.builders.create({ name: 'Npm', disk_size_gb: 1 })
  t.equal((await sdk.builders.get(builder.id)).name, 'Npm')
  t.same(ids(await sdk.builders.list()), [builder.id])
  const build = await sdk.builds.create({ source: await toFile(archive('Dockerfile', 'FROM localhost/none\n'), 'source.tar.gz'), cpus: 1, tags: '{"team":"a"}' })
  t.equal((await sdk.builds.get(build.id)).id, build.id)
  t.same(ids(await sdk.builds.list(TEAM)), [build.id])
  t.match(await firstOf(await sdk.builds.events(build.id, { follow: true })), { status: 'queued' })
  await sdk.builds.cancel(build.id)
  t.equal((await sdk.builds.get(build.id)).status, 'cancelled')
  t.equal((await sdk.builders.prune(builder.id)).status, 'pruning')
  await eventually('it is pruned', async () => (await sdk.builders.get(builder.id)).status !== 'pruning')
  await sdk.builders.delete(builder.id)
}

async function pushes (t: Test, { sdk, image, registry }: Place): Promise<void> {
  const { id } = await sdk.pushes.create({ image, target: `${registry}/npm/app:1`, insecure: true })
  t.same(ids(await sdk.pushes.list()), [id])
  t.equal(await eventually('it has ended', async () => {
    const { status } = await sdk.pushes.get(id)
    return status !== 'queued' && status !== 'pushing' && status
  }), 'pushed')
}

async function devices (t: Test, { sdk }: Place): Promise<void> {
  await sdk.devices.listAvailable()
  t.same(await sdk.devices.list(), [])
  t.match(await failureOf(sdk.devices.create({ pci_address: 'ffff:ff:1f.7' })), { status: 404 })
  t.match(await failureOf(sdk.devices.retrieve('none')), { status: 404 })
  t.match(await failureOf(sdk.devices.delete('none')), { status: 404 })
}

t.setTimeout(1_200_000)
if (reason === false) await t.test('every method of the npm SDK gets an answer that fits its type', { timeout: 1_200_000 }, everyMethod)
else t.comment(reason)
