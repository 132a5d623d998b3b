// What devices.long.test.ts runs on a host with an IOMMU: a server, a card that it gives to an instance, and what goes wrong on the way. It judges nothing: what it finds it writes
// down, a line of JSON each. Its arguments are the folder for that, the addresses of a card alone in its group and of one that is not, the name of an image, and its time in ms.
import assert from 'node:assert/strict'
import { appendFileSync, copyFileSync, existsSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import Hypeman from '@onkernel/hypeman'
import { hasCode } from '../../../core/errors/system-code.ts'
import { createApi, type Api } from '../../../setup/server/api.ts'
import { startServer, type ServerProcess } from '../../../setup/server/process.ts'
import { berth } from '../../cli/berth.ts'
import { SLOW_GUEST, slowDriver } from '../../emulated-host/slow.ts'
import { runCommand } from '../../helpers/exec.ts'

const [, , share = '', card = '', grouped = '', image = '', limitMs = ''] = process.argv
const LSPCI = 'for device in /sys/bus/pci/devices/*; do echo "$(cat $device/vendor):$(cat $device/device)"; done'
/** how long one question waits for a state; the answer must come before the client gives up, which is after 5 minutes */
const WAIT = '2m'
const began = Date.now()

const shared = {
  // as the test has left it, with the guests' system and an image
  folder: '/run/data',
  logLevel: 'debug',
  readyTimeoutMs: Number(limitMs),
  // What is not tested here takes time all the same.
  plugins: {
    registry: { enabled: false },
    builds: { enabled: false },
    pushes: { enabled: false },
    egress: { enabled: false },
    snapshots: { enabled: false },
    volumes: { enabled: false },
    guest: { config: SLOW_GUEST },
    instances: { config: { templates: { enabled: false } } },
    'hypervisor-qemu': { config: slowDriver('qemu') }
  }
}

interface Device { readonly name: string, readonly bound_to_vfio: boolean, readonly attached_to: string | null }
interface Available { readonly pci_address: string, readonly vendor_id: string, readonly device_id: string, readonly current_driver: string | null }

/** there before the server listens, and after it has been killed */
const serverLog = join(shared.folder, 'server.log')
const instances = join(shared.folder, 'data/instances')

let server: ServerProcess | undefined
let api: Api

/** Writes down what was found, and keeps the server's log where the test finds it, whatever happens next. */
function note (name: string, value: unknown): void {
  appendFileSync(join(share, 'report'), JSON.stringify({ name, value, seconds: Math.round((Date.now() - began) / 100) / 10 }) + '\n')
  if (existsSync(serverLog)) copyFileSync(serverLog, join(share, 'server.log'))
}

async function start (): Promise<void> {
  server = server === undefined ? await startServer(shared) : await server.restart()
  api = createApi(server.url, server.key)
}

/** Where a link leads; undefined when it is not there, or its process has gone meanwhile. */
function target (link: string): string | undefined {
  try {
    return readlinkSync(link)
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH')) return undefined
    throw error
  }
}

/** The card's driver, as the host's kernel has it. */
function driver (): string {
  return basename(target(`/sys/bus/pci/devices/${card}/driver`) ?? 'none')
}

/** The status and code that a call is refused with. */
async function refusal (method: string, path: string, body?: unknown): Promise<string> {
  const message = await api.call(method, path, body).then(() => 'not refused', String)
  return /: (\d{3} \w+):/.exec(message)?.[1] ?? message
}

/** What `berth` prints, or the exit code that it is refused with. */
async function command (...args: readonly string[]): Promise<string> {
  assert(server !== undefined)
  const { code, out, error } = await berth(args, { env: { BERTH_URL: server.url, BERTH_TOKEN: server.key } })
  return code === 0 ? out : `${code ?? 'killed'} ${error}`
}

async function get (name: string): Promise<Device> {
  const device: Device = Object(await api.call('GET', `/devices/${name}`))
  return device
}

const request = (name: string): Record<string, unknown> => ({
  name, image, size: '128MB', vcpus: 1, overlay_size: '64MB', devices: ['card'], entrypoint: [], cmd: ['/bin/sh', '-c', 'sleep 1000000'], skip_kernel_headers: true
})

async function register (): Promise<void> {
  const all: readonly Available[] = Object(await api.call('GET', '/devices/available'))
  const found = all.find(({ pci_address: address }) => address === card)
  note('the card is listed with its driver', `${found?.vendor_id}:${found?.device_id} ${found?.current_driver}`)
  note('a card that shares its group is listed', all.some(({ pci_address: address }) => address === grouped))
  note('an unknown address is refused', await refusal('POST', '/devices', { pci_address: '0000:7f:1f.7' }))
  note('a card that shares its group is refused', await refusal('POST', '/devices', { pci_address: grouped }))
  note('the command lists the card', (await command('device', 'available', '-q')).split('\n').includes(card))
  note('the card is registered, by the command', await command('device', 'register', card, '--name', 'card', '--format', '{{name}}'))
  note('registered, it has its driver still', driver())
}

/** Killed as soon as the card has left its driver, which is well before the VMM is started. */
async function crash (): Promise<void> {
  let outcome: string | undefined
  const creating = api.call('POST', '/instances', request('cut-off')).then(() => 'created', String).then((how) => { outcome = how })
  // Polled: sysfs tells nobody of a change of driver.
  while (driver() !== 'vfio-pci') {
    if (outcome !== undefined) throw new Error(`the create ended before the card was bound: ${outcome}`)
    await delay(5)
  }
  await server?.kill()
  await creating
  note('after a crash between bind and launch the card is bound', driver())
  note('after a crash between bind and launch there is no VMM', vmms().length)
  await start()
  note('the next server has no instance', await api.call('GET', '/instances'))
  note('the next server has given the card back', driver())
  note('the next server knows that nobody has it', (await get('card')).attached_to)
}

/** Processes of QEMU. */
function vmms (): readonly string[] {
  return readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && (target(`/proc/${pid}/exe`) ?? '').includes('qemu-system'))
}

async function attach (): Promise<string> {
  const { id }: { id: string } = Object(await api.call('POST', '/instances', request('owner')))
  note('an instance is created with the card', typeof id)
  note('while it has the card, that is bound', driver())
  const group = basename(readlinkSync(`/sys/bus/pci/devices/${card}/iommu_group`))
  const [vmm = ''] = vmms()
  const user = Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${vmm}/status`, 'utf8'))?.[1])
  note('its VMM has KVM', readFileSync(`/proc/${vmm}/cmdline`, 'utf8').split('\0').includes('kvm'))
  note('its VMM is not root', user > 0)
  note('the file of the group belongs to its VMM', statSync(`/dev/vfio/${group}`).uid === user)
  return id
}

async function look (id: string): Promise<void> {
  for (let isThere = false; !isThere;) isThere = Object(await api.call('GET', `/instances/${id}/wait?state=Running&timeout=${WAIT}`)).timed_out === false
  note('the guest runs', Object(await api.call('GET', `/instances/${id}`)).state)
  assert(server !== undefined)
  const { stdout, stderr, exitCode } = await runCommand(server, id, { command: ['/bin/sh', '-c', LSPCI] })
  const cards = stdout.split('\n').filter((line) => line === '0x8086:0x10d3')
  note('the guest sees the card by vendor and device', cards.length === 1 ? cards[0] : { exitCode, stdout, stderr })
}

async function keep (id: string): Promise<void> {
  const device = await get('card')
  note('the card is said to be the instance\'s', device.attached_to === id)
  note('the card is said to be bound', device.bound_to_vfio)
  note('the command says whose the card is', await command('device', 'ls', '--format', '{{name}} {{attached_to}}') === `card ${id}\n`)
  note('the command does not take it away now', (await command('device', 'rm', 'card')).slice(0, 1))
  note('unregistering it now is refused', await refusal('DELETE', '/devices/card'))
  note('a second instance with it is refused', await refusal('POST', '/instances', request('thief')))
  note('standby of its instance is refused', await refusal('POST', `/instances/${id}/standby`, {}))
  note('after that it is bound as before', driver())
}

async function giveBack (id: string): Promise<void> {
  await api.call('DELETE', `/instances/${id}?graceful_shutdown=false`)
  note('after the delete the card has its driver again', driver())
  note('after the delete there is no VMM', vmms().length)
  const { attached_to: attached, bound_to_vfio: bound } = await get('card')
  note('after the delete nobody has it', attached)
  note('after the delete it is not bound', bound)
  note('the card is unregistered, by the command', await command('device', 'rm', 'card'))
  note('unregistered, it is not found', await refusal('GET', '/devices/card'))
}

/** Each answer of the official SDK under its method's name: what they say of its types costs too much time to look up here. */
async function bySdk (): Promise<void> {
  assert(server !== undefined)
  const sdk = new Hypeman({ baseURL: server.url, apiKey: server.key, maxRetries: 0, timeout: Number(limitMs) })
  note('devices.listAvailable', await sdk.devices.listAvailable())
  note('devices.create', await sdk.devices.create({ pci_address: card, name: 'again' }))
  note('devices.list', await sdk.devices.list())
  note('devices.retrieve', await sdk.devices.retrieve('again'))
  await sdk.devices.delete('again')
  note('unregistered by the SDK, it is not listed', await sdk.devices.list())
}

async function main (): Promise<void> {
  note('before, the card has its driver', driver())
  await start()
  await register()
  await crash()
  const id = await attach()
  await look(id)
  await keep(id)
  await giveBack(id)
  await bySdk()
}

/** What may tell why, beside the server's log: the card's driver, and the last lines of QEMU and of the inner guest's kernel. */
function explain (error: unknown): void {
  note('failed', error instanceof Error ? error.stack : String(error))
  note('the card\'s driver now', driver())
  for (const id of existsSync(instances) ? readdirSync(instances) : []) {
    const file = join(instances, id, 'vmm.log')
    if (existsSync(file)) note(`the last lines of ${id}`, readFileSync(file, 'utf8').split('\n').slice(-30))
  }
}

const tooLate = delay(Number(limitMs)).then(() => { throw new Error(`not done after ${limitMs} ms`) })
try {
  await Promise.race([main(), tooLate])
} catch (error) {
  explain(error)
}
// The host is turned off next, with all that runs on it.
process.exit()
