// A protocol double of Cloud Hypervisor: its API, judged by its document, its files and its errors; and a guest without a kernel. It is no VMM and proves nothing about one.
// usage, as Cloud Hypervisor's own: cloud-hypervisor --version | --kernel FILE --serial file=FILE … | --api-socket SOCKET
import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, fstatSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Static } from 'typebox'
import { Value } from 'typebox/value'
import type { SavedGuest } from '../hypervisor-fake/script.ts'
import { CLOUD_HYPERVISOR_RULES, VM_CONFIG } from './cloud-hypervisor-rules.ts'
import { GuestSide } from './guest-side.ts'
import { readMemory, writeMemory } from './memory.ts'
import type { Phase } from './rules.ts'
import { Fault, serve } from './serve.ts'

const VERSION = process.env['BERTH_DOUBLE_VERSION'] ?? '53.0.0'
const SECTOR = 512
/** as numbers in a real state are, which JavaScript would round */
const LARGE = '18446744073709551615'

type Config = Static<typeof VM_CONFIG>
type Disk = NonNullable<Config['disks']>[number]
/** of a device, or of the whole */
interface Snapshot { readonly snapshots: Readonly<Record<string, Snapshot>>, readonly snapshot_data: { readonly state: string } | null }

const { values } = parseArgs({
  options: {
    version: { type: 'boolean' }, 'api-socket': { type: 'string' }, kernel: { type: 'string' }, cmdline: { type: 'string' }, cpus: { type: 'string' }, memory: { type: 'string' }, serial: { type: 'string' }, console: { type: 'string' }
  }
})

let phase: Phase = 'new'
let status: 'Created' | 'Running' | 'Paused' = 'Created'
let config: Config | undefined
let guest: GuestSide | undefined
const open = new Map<string, number>()

if (values.version === true) console.log(`cloud-hypervisor v${VERSION}`)
else if (values.kernel !== undefined) bootOnce(values.kernel, values.serial ?? '')
else listen(values['api-socket'] ?? '')

/** What a kernel without a disk says. The reset that may follow would be answered by another boot, so this ends only when it is ended. */
function bootOnce (kernel: string, serial: string): void {
  readFileSync(kernel)
  writeFileSync(serial.replace(/^file=/, ''), 'Kernel panic - not syncing: VFS: Unable to mount root fs (of the double)\n')
  setInterval(() => {}, 1000)
}

function listen (socket: string): void {
  if (socket === '') {
    console.error('the driver starts Cloud Hypervisor with --api-socket')
    process.exit(1)
  }
  // A name that is there already is taken over, as the real one does since 53.
  serve(socket, { rules: CLOUD_HYPERVISOR_RULES, prefix: '/api/v1', phase: () => phase, obey, refusal: (message) => ['Error from API', message] })
}

function fail (...causes: string[]): never { throw new Fault(causes.join(': '), 500) }

function current (): Config { return config ?? fail('VM is not created') }

function obey (call: string, _: string, body: Record<string, unknown>): object | undefined {
  switch (call) {
    case 'GET /vmm.ping': return { build_version: `v${VERSION}`, version: VERSION, pid: process.pid, features: ['kvm'] }
    case 'GET /vm.info': return info()
    case 'PUT /vm.create': create(body); return undefined
    case 'PUT /vm.boot': boot(); return undefined
    case 'PUT /vm.pause': change('Running', 'Paused'); return undefined
    case 'PUT /vm.resume': change('Paused', 'Running'); return undefined
    case 'PUT /vm.resize': resize(body['desired_balloon']); return undefined
    case 'PUT /vm.add-disk': return add(body)
    case 'PUT /vm.remove-device': remove(String(body['id'])); return undefined
    case 'PUT /vm.snapshot': save(folderIn(body['destination_url'])); return undefined
    case 'PUT /vm.restore': restore(folderIn(body['source_url']), body['resume'] === true); return undefined
  }
  return fail(`the double does not know ${call}`)
}

function info (): object {
  const { memory: { size }, balloon } = current()
  const ids = devices(current())
  return { config, state: status, memory_actual_size: size - (balloon?.size ?? 0), device_tree: Object.fromEntries(ids.map((id) => [id, { id, resources: [], children: [] }])) }
}

function devices ({ disks = [], net = [], balloon, vsock, devices: host = [] }: Config): string[] {
  return [...disks, ...net, ...balloon === undefined ? [] : [balloon], ...vsock === undefined ? [] : [vsock], ...host].map(({ id }) => id ?? fail('the driver names each device, since a saved state finds it by its name'))
}

function create (body: Record<string, unknown>): void {
  config = checked(body)
  phase = 'configured'
}

function checked (body: unknown): Config {
  if (!Value.Check(VM_CONFIG, body)) fail('Error parsing the configuration', JSON.stringify(body))
  const config: Config = Value.Clone(body)
  const ids = devices(config)
  if (new Set(ids).size !== ids.length) fail('Error validating the configuration', 'Identifier is not unique')
  const groups = (config.rate_limit_groups ?? []).map(({ id }) => id)
  for (const { rate_limit_group: group } of config.disks ?? []) if (group !== undefined && !groups.includes(group)) fail('Error validating the configuration', `Invalid rate_limit_group: ${group}`)
  return config
}

function boot (): void {
  const { payload, disks = [], devices: host = [] } = current()
  for (const path of [payload.kernel, payload.initramfs]) if (path !== undefined) closeSync(opened(path, true, 'Cannot open the kernel'))
  for (const wanted of ['berth.ports=vsock', 'reboot=t']) if (payload.cmdline?.split(' ').includes(wanted) !== true) fail(`the guest is not told ${wanted}`)
  for (const { path } of host) if (!existsSync(path)) fail('Cannot open the VFIO device', path)
  for (const disk of disks) attach(disk)
  run(undefined)
  status = 'Running'
}

function opened (path: string, readonly: boolean, what: string): number {
  try {
    return openSync(path, readonly ? 'r' : 'r+')
  } catch (error) {
    return fail(what, String(error))
  }
}

/** A disk is locked: by one that writes, or by any number that read. */
function attach (disk: Disk): void {
  const readonly = disk.readonly === true
  const fd = opened(disk.path, readonly, `Error while opening the disk ${disk.path}`)
  if (spawnSync('flock', [readonly ? '--shared' : '--exclusive', '--nonblock', '3'], { stdio: ['ignore', 'ignore', 'ignore', fd] }).status !== 0) {
    closeSync(fd)
    fail('Failed to acquire the lock of the disk', disk.path)
  }
  open.set(disk.id ?? '', fd)
}

function run (saved: SavedGuest | undefined): void {
  const { memory, vsock } = current()
  const name = vsock?.socket ?? fail('the guest has no vsock, so that its agent cannot be reached')
  if (existsSync(name)) fail('Cannot create virtio-vsock device', 'Error binding to the host-side Unix socket: Address in use', name)
  phase = 'started'
  guest = new GuestSide(name, memory.size, saved, () => status === 'Paused', () => process.exit(0))
}

function change (from: typeof status, to: typeof status): void {
  if (status !== from) fail('VM state transition is invalid', `InvalidStateTransition(${status}, ${to})`)
  status = to
}

function resize (balloon: unknown): void {
  const device = current().balloon ?? fail('Error from the VM', 'there is no balloon')
  if (typeof balloon !== 'number' || balloon >= current().memory.size) fail('Error validating the configuration', 'Ballon size is larger than the memory')
  device.size = Number(balloon)
}

function add (body: Record<string, unknown>): object {
  const next = checked({ ...current(), disks: [...current().disks ?? [], body] })
  const disk = next.disks?.at(-1) ?? fail('no disk')
  attach(disk)
  config = next
  return { id: disk.id, bdf: '0000:00:0a.0' }
}

/** Its guest lets go of everything at once. */
function remove (id: string): void {
  const fd = open.get(id)
  if (fd === undefined) fail('Error from device manager', `UnknownDeviceId("${id}")`)
  closeSync(fd ?? -1)
  open.delete(id)
  config = { ...current(), disks: (current().disks ?? []).filter((disk) => disk.id !== id) }
}

function folderIn (url: unknown): string {
  const folder = String(url).replace(/^file:\/\//, '')
  if (!existsSync(folder) || !statSync(folder).isDirectory()) fail(`Destination is not a directory: "${folder}"`)
  return folder
}

const node = (state: string | undefined, snapshots: Snapshot['snapshots'] = {}): Snapshot => ({ snapshots, snapshot_data: state === undefined ? null : { state } })

function save (folder: string): void {
  if (status !== 'Paused' || guest === undefined) fail('VM is not paused')
  const { memory, ...rest } = (guest ?? fail('there is no guest')).save()
  const disks = (current().disks ?? []).map(({ id = '', path }): [string, Snapshot] => {
    const sectors = Math.floor(fstatSync(open.get(id) ?? -1).size / SECTOR)
    return [id, node(JSON.stringify({ disk_path: path, disk_nsectors: sectors, avail_features: 0, acked_features: 0, config: { capacity: sectors } }))]
  })
  const state = node(JSON.stringify({ ...rest, memory: '' }).replace(/^\{/, `{"clock":${LARGE},`), { 'device-manager': node(undefined, Object.fromEntries(disks)) })
  try {
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config), { mode: 0o600 })
    writeFileSync(join(folder, 'state.json'), JSON.stringify(state), { mode: 0o600 })
    writeMemory(join(folder, 'memory-ranges'), current().memory.size, memory)
  } catch (error) {
    fail('Cannot write the snapshot', String(error))
  }
}

function restore (folder: string, resume: boolean): void {
  const [saved, state] = readSnapshot(folder)
  const memoryPath = join(folder, 'memory-ranges')
  closeSync(opened(memoryPath, true, 'Cannot read the memory'))
  if (statSync(memoryPath).size !== saved.memory.size) fail('Cannot read the memory', 'it has another size')
  const guestState = state.snapshot_data?.state ?? ''
  if (!guestState.includes(LARGE)) fail('Error deserialising', 'a number of the state is not what it was')
  config = saved
  const known = state.snapshots['device-manager']?.snapshots ?? {}
  const disks = saved.disks ?? []
  for (const id of Object.keys(known)) if (disks.every((disk) => disk.id !== id)) fail('the state has a device that the configuration has not', id)
  for (const disk of disks) {
    const data = known[disk.id ?? '']?.snapshot_data?.state
    if (data === undefined) fail('the configuration has a device that the state has not', String(disk.id))
    attach(disk)
    const { config: { capacity } }: { config: { capacity: number } } = JSON.parse(data ?? '')
    // The real one goes on with the size in the state, whatever the file's is.
    if (capacity !== Math.floor(statSync(disk.path).size / SECTOR)) fail('the guest would see another size than the disk has', String(disk.id))
  }
  status = 'Paused'
  const restored: SavedGuest = JSON.parse(guestState)
  run({ ...restored, memory: readMemory(memoryPath) })
  if (resume) change('Paused', 'Running')
}

function readSnapshot (folder: string): [Config, Snapshot] {
  try {
    const state: Snapshot = JSON.parse(readFileSync(join(folder, 'state.json'), 'utf8'))
    return [checked(JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'))), state]
  } catch (error) {
    if (error instanceof Fault) throw error
    return fail('Error deserialising', String(error))
  }
}
