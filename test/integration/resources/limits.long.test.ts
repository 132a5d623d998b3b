// Limits that hold, measured from both sides: the rate of disks and the size of memory inside real machines, processor and memory in the host's own figures.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, readFile, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { findPlace, kernelFiles, type Place } from '../../../plugins/resources/cgroups/place.ts'
import { shell } from '../../helpers/counter.ts'
import { busyboxImage, push } from '../../helpers/images.ts'
import { createShell, lines, waitFor } from '../../helpers/machine.ts'
import { figure } from '../../helpers/metrics.ts'
import { startTestServer, type TestServer } from '../../helpers/server.ts'
import { eventually } from '../../helpers/eventually.ts'

const MIB = 2 ** 20
const parent = `/berth-test-${randomBytes(4).toString('hex')}`
const place = await findPlace(parent, await kernelFiles())
const PROCESSORS = 0.4

/** The folders of all controllers at the same place. */
const folders = (found: Place): string[] => [...new Set([...Object.values(found.folders), ...found.accounting === undefined ? [] : [found.accounting]])]

t.teardown(async () => { if ('version' in place) for (const folder of folders(place)) await rmdir(folder) })

t.test('limits of machines', { timeout: 900_000 }, async (t) => {
  const server = await startTestServer(t, { plugins: { resources: sectionOf({ cpuOverhead: 1 }) } })
  const image = await push(server, await busyboxImage(), 'limits/busybox:latest')
  await t.test('disks together are as fast as disk_io_bps says, and stay so in every state', async (t) => { await disks(t, server, image) })
  await t.test('a machine that was made ahead gets its limit when it becomes an instance', async (t) => { await spares(t, server, image) })
  await t.test('the SDK reads what there is and who has it', async (t) => { await resources(t, server, image) })
  await t.test('hotplug_size is memory that the guest has and uses, and that goes with it', async (t) => { await memory(t, server, image) })
  await t.test('the host keeps a VMM to its processors and memory', 'version' in place ? {} : { skip: place.reason }, async (t) => {
    if ('version' in place) await groups(t, server, image, place)
  })
})

/** Room enough, so that this host need not be large. */
function sectionOf (cgroups: Record<string, unknown>) {
  return { enabled: true, config: { capacity: { cpu: 100, memory: '100GB', disk: '1000GB' }, oversubscription: { cpu: 1, network: 1, diskIo: 1 }, cgroups: { parent, ...cgroups } } }
}

async function disks (t: Test, server: TestServer, image: string): Promise<void> {
  const rate = 4 * MIB
  const { id } = await createShell(server, image, 'sleep 100000', { name: 'slow', disk_io_bps: '4MB/s' })
  await waitFor(server, id, 'Running')
  t.equal((await server.sdk.instances.get(id)).disk_io_bps, '4MB/s')
  const check = async (what: string, ref: string): Promise<void> => {
    await checkRate(t, what, rate, async () => await writeRate(server, ref, 20))
  }
  await check('writing', id)
  await checkRate(t, 'reading', rate, async () => await readRate(server, id, 20))
  await server.sdk.instances.standby(id)
  await server.sdk.instances.restore(id)
  await check('after standby and restore', id)
  const fork = await server.sdk.instances.fork(id, { name: 'slow-too', from_running: true })
  t.equal(fork.disk_io_bps, '4MB/s')
  await check('a fork', fork.id)
  await server.sdk.instances.delete(fork.id)
  await server.sdk.instances.stop(id)
  await server.sdk.instances.start(id, {})
  await waitFor(server, id, 'Running')
  await check('after stop and start', id)
  await server.sdk.instances.delete(id)
  const free = await createShell(server, image, 'sleep 100000', { name: 'free' })
  await waitFor(server, free.id, 'Running')
  const unlimited = await writeRate(server, free.id, 20)
  t.ok(unlimited > 2 * rate, `without a limit: ${(unlimited / MIB).toFixed(2)} MiB/s`)
  await server.sdk.instances.delete(free.id)
}

async function resources (t: Test, server: TestServer, image: string): Promise<void> {
  const { id } = await createShell(server, image, 'sleep 100000', { name: 'counted', hotplug_size: '128MB', disk_io_bps: '10MB/s' })
  const { cpu, memory, disk, allocations, disk_breakdown: breakdown } = await server.sdk.resources.get()
  t.match(cpu, { type: 'cpu', capacity: 100, effective_limit: 100, allocated: 1, available: 99, oversub_ratio: 1, source: 'configured' })
  t.match(memory, { capacity: 100 * 2 ** 30, allocated: 256 * MIB })
  t.same(allocations, [{
    instance_id: id, instance_name: 'counted', cpu: 1, memory_bytes: 256 * MIB, disk_bytes: 256 * MIB, network_download_bps: 0, network_upload_bps: 0, disk_io_bps: 10 * MIB
  }])
  t.ok((breakdown?.images_bytes ?? 0) > 0 && (breakdown?.oci_cache_bytes ?? 0) > 0, 'the image, and its layers')
  const { overlays_bytes: overlays = 0, ...counted } = breakdown ?? {}
  t.equal(overlays, 256 * MIB)
  t.equal(disk.allocated, Object.values(counted).reduce((sum, bytes) => sum + bytes, 0), 'writable disks are promised beyond what there is')
  await server.sdk.instances.stop(id)
  t.match(await server.sdk.resources.get(), { cpu: { allocated: 0 }, memory: { allocated: 0 }, allocations: [{ cpu: 0, memory_bytes: 0, disk_bytes: 256 * MIB }] })
  await server.sdk.instances.delete(id)
}

async function spares (t: Test, server: TestServer, image: string): Promise<void> {
  await server.stop()
  await server.restart({ plugins: { resources: sectionOf({ cpuOverhead: 1 }), instances: { config: { templates: { enabled: true, spares: 1, quiet: '100ms' } } } } })
  const first = await createShell(server, image, 'sleep 100000', { name: 'first' })
  await waitFor(server, first.id, 'Running')
  await untilSpare(server)
  const { id } = await createShell(server, image, 'sleep 100000', { name: 'from-spare', disk_io_bps: '4MB/s' })
  await waitFor(server, id, 'Running')
  t.match((await lines(server, id, { source: 'hypeman' })).join('\n'), 'create: from a spare VM')
  // The next one is made meanwhile, which takes a processor.
  await untilSpare(server)
  await checkRate(t, 'writing', 4 * MIB, async () => await writeRate(server, id, 20))
  for (const each of [first.id, id]) await server.sdk.instances.delete(each)
  await server.stop()
  await server.restart({ plugins: { resources: sectionOf({ cpuOverhead: 1 }) } })
}

async function untilSpare (server: TestServer): Promise<void> {
  await eventually('a spare VM is made', async () => await figure(server, 'berth_instances_spares') === 1)
}

/** Never faster than it may be, and that fast: a host that is busy with other things may keep a machine from it for a while, but not each time. */
async function checkRate (t: Test, what: string, rate: number, measure: () => Promise<number>): Promise<void> {
  for (let left = 3; left > 0; left--) {
    const measured = await measure()
    t.ok(measured < rate * 1.1, `${what}: ${(measured / MIB).toFixed(2)} MiB/s of ${rate / MIB}`)
    if (measured > rate * 0.9) return
  }
  t.fail(`${what} never comes within 10 % of the limit`)
}

/** Bytes per second, by the guest's own clock. */
async function writeRate (server: TestServer, id: string, mebibytes: number): Promise<number> {
  return await rateOf(server, id, mebibytes, 'if=/dev/zero of=/measured oflag=direct')
}

async function readRate (server: TestServer, id: string, mebibytes: number): Promise<number> {
  return await rateOf(server, id, mebibytes, 'if=/measured of=/dev/null iflag=direct')
}

async function rateOf (server: TestServer, id: string, mebibytes: number, operands: string): Promise<number> {
  const output = await shell(server, id, `cut -d' ' -f1 /proc/uptime; dd ${operands} bs=64k count=${mebibytes * 16} 2>&1; cut -d' ' -f1 /proc/uptime`)
  const [from, counted, , to] = output.split('\n')
  if (counted !== `${mebibytes * 16}+0 records in`) throw new Error(`dd said: ${output}`)
  return mebibytes * MIB / (Number(to) - Number(from))
}

async function memory (t: Test, server: TestServer, image: string): Promise<void> {
  const plain = await createShell(server, image, 'sleep 100000', { name: 'plain' })
  await waitFor(server, plain.id, 'Running')
  const before = await memTotal(server, plain.id)
  await server.sdk.instances.delete(plain.id)
  const { id } = await createShell(server, image, 'sleep 100000', { name: 'plugged', hotplug_size: '256MB' })
  await waitFor(server, id, 'Running')
  t.equal((await server.sdk.instances.get(id)).hotplug_size, '256MB')
  const grown = await memTotal(server, id) - before
  // The kernel keeps some of it for its list of pages.
  t.ok(grown > 0.95 * 256 * MIB && grown <= 256 * MIB, `MemTotal is ${(grown / MIB).toFixed(1)} MiB more`)
  const { allocated_memory_bytes: allocated, memory_rss_bytes: rss, memory_utilization_ratio: ratio } = await server.sdk.instances.stats(id)
  t.equal(allocated, 384 * MIB)
  t.ok(Math.abs((ratio ?? 0) - rss / allocated) < 1e-9, 'the ratio is of both')
  // More than there is without it.
  const sum = await shell(server, id, 'mount -o remount,size=90% /dev/shm && head -c 8000000 /dev/urandom > /seed && for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do cat /seed; done > /dev/shm/fill && md5sum < /dev/shm/fill')
  await server.sdk.instances.standby(id)
  await server.sdk.instances.restore(id)
  t.equal(await shell(server, id, 'md5sum < /dev/shm/fill'), sum, 'after standby and restore')
  const fork = await server.sdk.instances.fork(id, { name: 'plugged-too', from_running: true })
  t.equal(await shell(server, fork.id, 'md5sum < /dev/shm/fill'), sum, 'in a fork')
  t.equal(await memTotal(server, fork.id) - before, grown)
  await server.sdk.instances.delete(fork.id)
  t.equal(await shell(server, id, 'md5sum < /dev/shm/fill'), sum, 'and the source has it still')
  await server.sdk.instances.stop(id)
  await server.sdk.instances.start(id, {})
  await waitFor(server, id, 'Running')
  t.equal(await memTotal(server, id) - before, grown, 'after stop and start')
  await server.sdk.instances.delete(id)
}

async function memTotal (server: TestServer, id: string): Promise<number> {
  return Number(/MemTotal:\s+(\d+) kB/.exec(await shell(server, id, 'cat /proc/meminfo'))?.[1]) * 1024
}

async function groups (t: Test, server: TestServer, image: string, found: Place): Promise<void> {
  const resources = sectionOf({ cpuPerVcpu: PROCESSORS, cpuOverhead: 0, memoryOverhead: '300MB' })
  await server.stop()
  await server.restart({ plugins: { resources } })
  const { id } = await createShell(server, image, 'while :; do :; done', { name: 'busy' })
  await waitFor(server, id, 'Running')
  const [name] = await groupsIn(folders(found)[0] ?? '')
  if (name === undefined) throw new Error('the server has made no folder for its groups')
  const home = (controller: keyof Place['folders']): string => join(found.folders[controller] ?? '', name, id)
  const figure = async (folder: string, file: string): Promise<number> => Number((await readFile(join(folder, file), 'utf8')).trim())
  const limit = await figure(home('memory'), found.version === 2 ? 'memory.max' : 'memory.limit_in_bytes')
  t.equal(limit, (128 + 300) * MIB)
  t.ok(await figure(home('pids'), 'pids.max') > 0)
  const usage = async (): Promise<number> => found.version === 2
    ? Number(/usage_usec (\d+)/.exec(await readFile(join(home('cpu'), 'cpu.stat'), 'utf8'))?.[1]) / 1e6
    : await figure(join(found.accounting ?? found.folders.cpu ?? '', name, id), 'cpuacct.usage') / 1e9
  const throttled = async (): Promise<number> => Number(/nr_throttled (\d+)/.exec(await readFile(join(home('cpu'), 'cpu.stat'), 'utf8'))?.[1])
  const busyFor = async (): Promise<void> => {
    const [used, times, began] = [await usage(), await throttled(), performance.now()]
    await delay(4000)
    // A host that is busy with other things gives it less than its limit for a while.
    while (await throttled() === times && performance.now() - began < 60_000) await delay(100)
    const share = (await usage() - used) / ((performance.now() - began) / 1000)
    t.ok(share < PROCESSORS * 1.1, `the VMM uses ${share.toFixed(3)} processors of ${PROCESSORS}`)
    t.ok(await throttled() > times, 'and would have used more')
  }
  await busyFor()
  await shell(server, id, 'mount -o remount,size=90% /dev/shm; head -c 40000000 /dev/zero > /dev/shm/fill; head -c 60000000 /dev/urandom > /fill; sync')
  const used = await figure(home('memory'), found.version === 2 ? 'memory.current' : 'memory.usage_in_bytes')
  t.ok(used > 60 * MIB && used <= limit, `the VMM and its files use ${Math.round(used / MIB)} MiB of ${limit / MIB}`)
  await server.kill9()
  await server.restart({ plugins: { resources } })
  await waitFor(server, id, 'Running')
  await busyFor()
  await server.sdk.instances.standby(id)
  t.notOk(existsSync(home('cpu')), 'in standby there is no group')
  await server.sdk.instances.restore(id)
  await busyFor()
  await server.sdk.instances.delete(id)
  for (const folder of folders(found)) t.same(await groupsIn(join(folder, name)), [], 'nothing is left')
  t.match(await server.sdk.get('/capabilities'), { host: { cgroups: { active: true, version: found.version } } })
  await server.stop()
  for (const folder of folders(found)) t.same(await groupsIn(folder), [], 'not even the server\'s own')
  await server.restart()
}

async function groupsIn (folder: string): Promise<string[]> {
  return (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isDirectory()).map(({ name }) => name)
}
