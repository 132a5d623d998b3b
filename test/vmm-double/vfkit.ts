// A protocol double of vfkit: its arguments and its API as the sources of 0.6.4 have them, and a guest without a kernel. It is no VMM and proves nothing about one.
// usage, as vfkit's own: vfkit --version | --cpus N --memory MIB --kernel FILE --initrd FILE --kernel-cmdline TEXT [--restful-uri URI] --device DEVICE…
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { AGENT_PORT, OUTPUT_PORT, REPORT_PORT } from '../../core/library/vmm/vsock.ts'
import { GuestSide } from './guest-side.ts'
import type { Phase } from './rules.ts'
import { serve } from './serve.ts'
import { VFKIT_RULES } from './vfkit-rules.ts'

const VERSION = process.env['BERTH_DOUBLE_VERSION'] ?? '0.6.4'
const MIB = 2 ** 20
/** of a socket's path on macOS */
const MOST_SOCKET_BYTES = 103
/** options of each device, and whether they have a value */
const OPTIONS: Readonly<Record<string, Readonly<Record<string, boolean>>>> = {
  'virtio-serial': { logFilePath: true },
  'virtio-rng': {},
  'virtio-blk': { path: true, deviceId: true, readonly: false },
  'virtio-vsock': { port: true, socketURL: true, connect: false, listen: false }
}

interface Device { readonly kind: string, readonly options: Readonly<Record<string, string>> }

const { values } = parseArgs({
  options: {
    version: { type: 'boolean' }, cpus: { type: 'string' }, memory: { type: 'string' }, kernel: { type: 'string' }, initrd: { type: 'string' }, 'kernel-cmdline': { type: 'string' },
    'restful-uri': { type: 'string' }, device: { type: 'string', multiple: true }
  }
})

if (values.version === true) console.log(`vfkit version: v${VERSION}`)
else start()

function fail (why: string): never {
  console.error(`Error: ${why}`)
  process.exit(1)
}

function start (): void {
  const devices = (values.device ?? []).map(deviceOf)
  const cmdline = values['kernel-cmdline']
  if (values.kernel === undefined || values.initrd === undefined || cmdline === undefined) fail('if any flags in the group [kernel initrd kernel-cmdline] are set they must all be set')
  for (const file of [values.kernel, values.initrd]) readFileSync(file ?? '', { flag: 'r' })
  if (values['restful-uri'] === undefined) bootOnce(devices)
  else run(devices, values['restful-uri'], cmdline ?? '')
}

/** What a kernel says that finds no first process. It stays there. */
function bootOnce (devices: readonly Device[]): void {
  writeFileSync(devices.find(({ kind }) => kind === 'virtio-serial')?.options['logFilePath'] ?? '', 'Kernel panic - not syncing: Requested init /none failed (of the double)\n')
  setInterval(() => {}, 1000)
}

function run (devices: readonly Device[], uri: string, cmdline: string): void {
  const api = socketIn(uri.replace(/^unix:\/\//, ''))
  if (!uri.startsWith('unix:///')) fail(`invalid unix uri: ${uri}`)
  if (!cmdline.split(' ').includes('berth.ports=vsock')) fail('the guest is not told of its way to the host')
  const [agent, output, report] = ([[AGENT_PORT, 'connect'], [OUTPUT_PORT, 'listen'], [REPORT_PORT, 'listen']] as const).map(([port, way]) => {
    const found = devices.find(({ kind, options }) => kind === 'virtio-vsock' && options['port'] === String(port))
    if (found?.options[way] === undefined) return fail(`the guest has no vsock port ${port} that ${way}s`)
    return socketIn(found.options['socketURL'] ?? '')
  })
  for (const { kind, options: { path = '', readonly } } of devices) {
    if (kind === 'virtio-blk') closeSync(openSync(path, readonly === undefined ? 'r+' : 'r'))
  }
  let phase: Phase = 'new'
  serve(api, { rules: VFKIT_RULES, phase: () => phase, obey: () => ({ state: phase === 'started' ? 'VirtualMachineStateRunning' : 'VirtualMachineStateStarting', canStart: false, canPause: true, canResume: false, canStop: true, canHardStop: true }), refusal: (error) => ({ error }) })
  // It answers before its VM runs.
  setTimeout(() => {
    phase = 'started'
    const guest = new GuestSide(agent ?? '', Number(values.memory) * MIB, undefined, () => false, () => process.exit(0), { output: output ?? '', report: report ?? '' })
    process.once('exit', () => guest.close())
  }, 20)
}

function socketIn (path: string): string {
  if (!path.startsWith('/')) fail(`invalid unix uri: missing path: ${path}`)
  if (Buffer.byteLength(path) > MOST_SOCKET_BYTES) fail('invalid unix uri: socket path length exceeds macOS limits')
  return path
}

function deviceOf (text: string): Device {
  const [kind = '', ...rest] = text.split(',')
  const known = OPTIONS[kind] ?? fail(`unknown device type: ${kind}`)
  const options = Object.fromEntries(rest.map((option) => {
    const [name = '', value] = option.split(/=(.*)/s)
    if (known[name] === undefined) fail(`unknown option for ${kind} devices: ${name}`)
    if (known[name] !== (value !== undefined)) fail(`unexpected value for ${kind} '${name}' option: ${value}`)
    return [name, value ?? '']
  }))
  return { kind, options }
}
