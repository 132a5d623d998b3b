// A protocol double of Firecracker: its API, judged by its document, its files and its errors; and a guest without a kernel. It is no VMM and proves nothing about one.
// usage, as Firecracker's own: firecracker --version | --no-api … --config-file FILE | --api-sock SOCKET --enable-pci [--level LEVEL]
import { closeSync, existsSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { hasCode } from '../../core/errors/system-code.ts'
import type { SavedGuest } from '../hypervisor-fake/script.ts'
import { FIRECRACKER_RULES } from './firecracker-rules.ts'
import { GuestSide } from './guest-side.ts'
import { readMemory, writeMemory } from './memory.ts'
import type { Phase } from './rules.ts'
import { Fault, serve } from './serve.ts'

const VERSION = process.env['BERTH_DOUBLE_VERSION'] ?? '1.16.1'
const MIB = 2 ** 20

interface Drive { readonly path: string, readonly readonly: boolean }
interface Snapshot { readonly double: 'firecracker', readonly drives: Readonly<Record<string, Drive>>, readonly nic?: string, readonly vsock: string, readonly mib: number, readonly guest: SavedGuest }

const { values } = parseArgs({
  options: {
    version: { type: 'boolean' }, 'no-api': { type: 'boolean' }, 'config-file': { type: 'string' }, 'api-sock': { type: 'string' }, 'enable-pci': { type: 'boolean' }, level: { type: 'string' }
  }
})

let phase: Phase = 'new'
let status: 'Not started' | 'Running' | 'Paused' = 'Not started'
let mib = 128
let kernel: string | undefined
let nic: string | undefined
let vsock: string | undefined
let guest: GuestSide | undefined
/** whether the guest has been told, since it was paused last, that its connections are gone */
let isTold = false
const drives = new Map<string, Drive & { readonly fd: number }>()

if (values.version === true) console.log(`Firecracker v${VERSION}`)
else if (values['no-api'] === true) bootOnce(values['config-file'] ?? '')
else listen(values['api-sock'] ?? '')

/** What a kernel without a disk says, and the reset that follows. */
function bootOnce (file: string): void {
  const config: { 'boot-source'?: { kernel_image_path?: string } } = JSON.parse(readFileSync(file, 'utf8'))
  readFileSync(config['boot-source']?.kernel_image_path ?? '')
  console.log('Kernel panic - not syncing: VFS: Unable to mount root fs (of the double)')
}

function listen (socket: string): void {
  if (socket === '' || values['enable-pci'] !== true) {
    console.error('the driver starts Firecracker with --api-sock and --enable-pci')
    process.exit(1)
  }
  serve(socket, { rules: FIRECRACKER_RULES, phase: () => phase, obey, refusal: (message) => ({ fault_message: message }) })
}

function obey (call: string, name: string, body: Record<string, unknown>): object | undefined {
  const text = (field: string): string => String(body[field] ?? '')
  const isConfiguration = call.startsWith('PUT') && phase === 'new' && call !== 'PUT /snapshot/load'
  switch (call) {
    case 'GET /': return { app_name: 'Firecracker', id: 'anonymous-instance', state: status, vmm_version: VERSION }
    case 'GET /version': return { firecracker_version: VERSION }
    case 'PUT /machine-config': mib = Number(body['mem_size_mib']); break
    case 'PUT /boot-source':
      mustOpen(body['kernel_image_path'], 'Boot source error: The kernel file cannot be opened: ')
      mustOpen(body['initrd_path'], 'Boot source error: The initrd file cannot be opened due to invalid path or invalid permissions. ')
      kernel = text('boot_args')
      break
    case 'PUT /drives/*': attachDrive(name, { path: text('path_on_host'), readonly: body['is_read_only'] === true }); break
    case 'PATCH /drives/*': patchDrive(name, body['path_on_host']); break
    case 'PUT /network-interfaces/*': nic = name; break
    case 'PUT /vsock': vsock = text('uds_path'); break
    case 'PUT /entropy': break
    case 'PUT /actions': start(); return undefined
    case 'PATCH /vm': setState(text('state')); break
    case 'PUT /snapshot/create': save(text('snapshot_path'), text('mem_file_path')); break
    case 'PUT /snapshot/load': load(body); return undefined
  }
  if (isConfiguration) phase = 'configured'
  return undefined
}

function opened (path: string, readonly: boolean, what: string): number {
  try {
    return openSync(path, readonly ? 'r' : 'r+')
  } catch (error) {
    throw new Fault(`${what}${String(error)}`)
  }
}

/** The real one does not say which file it is either. */
function mustOpen (path: unknown, what: string): void {
  if (path === undefined) return
  try {
    closeSync(openSync(String(path), 'r'))
  } catch (error) {
    throw new Fault(`${what}${hasCode(error, 'ENOENT') ? 'No such file or directory (os error 2)' : 'Permission denied (os error 13)'}`)
  }
}

function attachDrive (id: string, drive: Drive): void {
  drives.set(id, { ...drive, fd: opened(drive.path, drive.readonly, `Drive config error: Unable to create the virtio block device: ${drive.path}: `) })
}

function patchDrive (id: string, path: unknown): void {
  const drive = drives.get(id)
  if (drive === undefined) throw new Fault('Drive config error: Unable to patch the block device: Invalid device id')
  if (typeof path !== 'string') return
  const fd = opened(path, drive.readonly, `Drive config error: Unable to patch the block device: ${path}: `)
  closeSync(drive.fd)
  drives.set(id, { path, readonly: drive.readonly, fd })
}

function start (): void {
  if (kernel === undefined) throw new Fault('Start microvm error: Cannot start microvm without kernel configuration.')
  for (const wanted of ['berth.ports=vsock', 'berth.off=reset']) if (!kernel.split(' ').includes(wanted)) throw new Fault(`the guest is not told ${wanted}`)
  run(undefined)
  status = 'Running'
}

function run (saved: SavedGuest | undefined): void {
  const name = vsock ?? ''
  if (name === '') throw new Fault('the guest has no vsock, so that its agent cannot be reached')
  if (existsSync(name)) throw new Fault(`Vsock config error: Cannot create backend for vsock device: UnixBind(Os { code: 98, kind: AddrInUse, message: "${name}" })`)
  phase = 'started'
  guest = new GuestSide(name, mib * MIB, saved, () => status === 'Paused', () => process.exit(0))
}

function setState (state: string): void {
  // As the real one up to 1.16.1: without a snapshot in between it waits for ever for an answer to what the guest was not told.
  if (state === 'Resumed' && status === 'Paused') if (isTold) guest?.reset(); else guest?.deafen()
  if (state === 'Paused') isTold = false
  status = state === 'Paused' ? 'Paused' : 'Running'
}

function save (statePath: string, memoryPath: string): void {
  if (status !== 'Paused' || guest === undefined) throw new Fault('Create snapshot error: Cannot perform a snapshot of a running microVM')
  isTold = true
  const { memory, ...rest } = guest.save()
  const saved: Snapshot = {
    double: 'firecracker', drives: Object.fromEntries([...drives].map(([id, { path, readonly }]) => [id, { path, readonly }])), ...nic === undefined ? {} : { nic }, vsock: vsock ?? '', mib, guest: { ...rest, memory: '' }
  }
  try {
    writeFileSync(statePath, JSON.stringify(saved), { mode: 0o600 })
    writeMemory(memoryPath, mib * MIB, memory)
  } catch (error) {
    for (const path of [statePath, memoryPath]) rmSync(path, { force: true })
    throw new Fault(`Create snapshot error: Cannot perform open on the snapshot backing file: ${String(error)}`)
  }
}

function load (body: Record<string, unknown>): void {
  const { snapshot_path: statePath, mem_backend: backend, network_overrides: overrides = [], resume_vm: resume }: { snapshot_path?: string, mem_backend?: { backend_path?: string }, network_overrides?: Array<{ iface_id: string }>, resume_vm?: boolean } = body
  const failed = 'Load snapshot error: Failed to restore from snapshot: '
  const saved = readSnapshot(statePath ?? '', failed)
  mib = saved.mib
  vsock = saved.vsock
  nic = saved.nic
  const memoryPath = backend?.backend_path ?? ''
  closeSync(opened(memoryPath, true, `${failed}Failed to load guest memory: `))
  if (statSync(memoryPath).size !== mib * MIB) throw new Fault(`${failed}Failed to load guest memory: it has another size`)
  const memory = readMemory(memoryPath)
  for (const { iface_id: id } of overrides) if (id !== nic) throw new Fault(`${failed}Unknown Network Device.`)
  for (const [id, drive] of Object.entries(saved.drives)) attachDrive(id, drive)
  status = 'Paused'
  isTold = true
  run({ ...saved.guest, memory })
  if (resume === true) setState('Resumed')
}

function readSnapshot (path: string, failed: string): Snapshot {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new Fault(`${failed}Failed to get snapshot state from file: ${String(error)}`)
  }
}
