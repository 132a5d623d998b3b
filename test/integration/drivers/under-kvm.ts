// The further steps of the scenario on a host with KVM: what only KVM shows of a machine, and what the other tests of the whole server show under TCG alone.
import { readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { cpToInstance } from '@onkernel/hypeman/lib/cp'
import { processesIn } from '../../../setup/server/leftovers.ts'
import { look, shell } from '../../helpers/counter.ts'
import { eventually } from '../../helpers/eventually.ts'
import { testFolder } from '../../helpers/folder.ts'
import { hasSpares } from '../../helpers/hypervisor-names.ts'
import { createShell, lines, waitFor } from '../../helpers/machine.ts'
import type { TestServer } from '../../helpers/server.ts'
import { has, NAME, type Stage, type Step } from './stage.ts'

const FIELDS = { skip_kernel_headers: true, overlay_size: '64MB' }
const ALONE = { ...FIELDS, network: { enabled: false } }

export const stepsUnderKvm: Readonly<Record<string, Step>> = {
  'KVM runs it: its clock is kvm-clock, and the host\'s kernel moves QEMU\'s packets': kvm,
  'a file comes to it whole, and the exit code of a program is told': copies,
  'a volume comes to it while it runs, and goes': volume,
  'a machine has memory plugged in': hotplug,
  'the server is killed, and the next one takes the machine over': adoption,
  'machines are made of a template and of a spare VM': templates
}

async function kvm (t: Test, { server, driver }: Stage): Promise<void> {
  const { runtimes }: { readonly runtimes: ReadonlyArray<{ readonly name: string, readonly acceleration?: string }> } = Object(await server.api.call('GET', '/capabilities'))
  t.equal(runtimes.find(({ name }) => name === driver)?.acceleration, 'kvm')
  t.equal((await shell(server, NAME, 'cat /sys/devices/system/clocksource/clocksource0/current_clocksource')).trim(), 'kvm-clock')
  if (driver.startsWith('qemu')) t.ok((await openFiles(server, 'qemu-system')).includes('/dev/vhost-net'), 'vhost-net')
  if (driver === 'firecracker' && process.env['BERTH_JAILER'] !== undefined) {
    t.ok((await processesIn(server.dataDir)).some(({ command }) => command.startsWith('/firecracker --id ')), 'it is in its jail')
  }
}

/** What VMMs of this program have open. */
async function openFiles (server: TestServer, program: string): Promise<string[]> {
  const vmms = (await processesIn(server.dataDir)).filter(({ command }) => command.includes(program))
  const folders = vmms.map(({ pid }) => `/proc/${pid}/fd`)
  const files = await Promise.all(folders.map(async (folder) => await Promise.all((await readdir(folder)).map(async (name) => await readlink(join(folder, name)).catch(() => '')))))
  return files.flat()
}

async function copies (t: Test, { server, image }: Stage): Promise<void> {
  const here = testFolder(t, { file: 'x'.repeat(100_000) })
  await cpToInstance({ baseURL: server.url, apiKey: server.key }, { instanceId: NAME, srcPath: join(here, 'file'), dstPath: '/root/file' })
  t.equal(await shell(server, NAME, 'wc -c < /root/file'), '100000\n')
  const { id } = await createShell(server, image, 'echo last words; exit 3', ALONE)
  t.match(await waitFor(server, id, 'Stopped'), { exit_code: 3 })
  t.same(await lines(server, id), ['last words'])
  await server.sdk.instances.delete(id)
}

async function volume (t: Test, { server, driver }: Stage): Promise<void> {
  const { id } = await server.sdk.volumes.create({ name: 'luggage', size_gb: 1 })
  const attach = async (): Promise<unknown> => await server.sdk.instances.volumes.attach(id, { id: NAME, mount_path: '/luggage' })
  if (driver !== 'firecracker') {
    await attach()
    t.equal(await shell(server, NAME, 'echo kept > /luggage/word; sync; cat /luggage/word'), 'kept\n')
    await server.sdk.instances.volumes.detach(id, { id: NAME })
  } else {
    await t.rejects(attach(), { message: new RegExp(`501.*${driver}`) }, 'it is refused by the driver\'s name')
  }
  await server.sdk.volumes.delete(id)
}

async function hotplug (t: Test, stage: Stage): Promise<void> {
  const { server, image } = stage
  const create = async (): Promise<{ readonly id: string }> => await createShell(server, image, 'sleep 100000', { ...ALONE, hotplug_size: '128MB' })
  if (!await has(t, stage, 'hotplug-memory', create)) return
  const { id } = await create()
  await waitFor(server, id, 'Running')
  const kilobytes = Number(/^MemTotal: +(\d+)/m.exec(await shell(server, id, 'cat /proc/meminfo'))?.[1])
  t.ok(kilobytes > 200_000, `it has ${kilobytes} kB`)
  await server.sdk.instances.delete(id)
}

/** The next server makes templates, too. */
async function adoption (t: Test, { server, plugins, before }: Stage): Promise<void> {
  await server.kill9()
  await server.restart({ plugins: { ...plugins, instances: { config: { ...plugins['instances']?.config, templates: { enabled: true, spares: 1, quiet: '100ms' } } } } })
  t.match(await server.sdk.instances.get(NAME), { state: 'Running' })
  const after = await look(server, NAME, before.counter)
  t.equal(after.nonce, before.nonce, 'the same program')
  t.ok(after.uptime > before.uptime, 'that never stopped')
}

async function templates (t: Test, { server, image, driver }: Stage): Promise<void> {
  const made: string[] = []
  const make = async (name: string): Promise<string> => {
    const { id } = await createShell(server, image, `echo ${name}; sleep 100000`, { ...FIELDS, name })
    await waitFor(server, id, 'Running')
    await eventually('its output', async () => (await lines(server, id)).includes(name))
    made.push(id)
    return /create: ([^:]*):/.exec((await lines(server, id, { source: 'hypeman' })).join('\n'))?.[1] ?? ''
  }
  // Not by the metrics: all of a server's figures take an emulated host seconds, in which the VM that is waited for stands.
  const isThere = async (spares: number): Promise<void> => {
    await eventually(`a template with ${spares} spare VMs`, async () => {
      const templates = await server.api.call('GET', '/templates') as ReadonlyArray<{ readonly spares: number }>
      return templates.some((template) => template.spares >= spares)
    }, { limitMs: 300_000, pollMs: 1000 })
  }
  const fromSpare = hasSpares(driver)
  t.equal(await make('first'), 'by a boot')
  await isThere(fromSpare ? 1 : 0)
  t.equal(await make('second'), fromSpare ? 'from a spare VM' : 'from a template')
  t.match(await make('third'), /^from a (?:template|spare VM)$/)
  const bootIds = await Promise.all(made.map(async (id) => await shell(server, id, 'cat /proc/sys/kernel/random/boot_id')))
  t.equal(new Set(bootIds).size, 3, 'each is a machine of its own')
  for (const id of made) await server.sdk.instances.delete(id)
}
