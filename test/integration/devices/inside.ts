// What devices.test.ts runs on a host with an IOMMU: a server, a card that it gives to an instance, and everything that can go wrong on the way. Each step is a line of JSON in
// the file that is named by the first argument; the addresses of the cards are the next, and the last is the name of an image.
import assert from 'node:assert/strict'
import { appendFileSync, cpSync, readlinkSync } from 'node:fs'
import { basename } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createApi, type Api } from '../../../setup/server/api.ts'
import { lastLogLines, startServer, type ServerProcess } from '../../../setup/server/process.ts'

const [, , report = '', card = '', grouped = '', image = ''] = process.argv
const GUEST = 'for d in /sys/bus/pci/devices/*; do echo "PCI $(cat $d/vendor):$(cat $d/device)"; done; sleep 100000'
const began = Date.now()

interface Device { readonly id: string, readonly bound_to_vfio: boolean, readonly attached_to: string | null }

function driver (address = card): string | undefined {
  try {
    return basename(readlinkSync(`/sys/bus/pci/devices/${address}/driver`))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** Polled: sysfs tells nobody of a change of driver. */
async function until (what: string, holds: () => boolean | Promise<boolean>, timeoutMs: number): Promise<void> {
  for (const deadline = Date.now() + timeoutMs; !await holds();) {
    if (Date.now() > deadline) throw new Error(`${what}: not within ${timeoutMs} ms`)
    await delay(5)
  }
}

const shared = {
  folder: '/run/berth',
  logLevel: 'debug',
  readyTimeoutMs: 240_000,
  // Nothing here is what is tested, and all of it takes time twice emulated.
  plugins: {
    instances: { config: { templates: { enabled: false } } },
    snapshots: { enabled: false },
    volumes: { enabled: false },
    'hypervisor-qemu': { config: { accelerator: 'tcg', launchTimeout: '2m' } }
  }
}

let server: ServerProcess | undefined
let api: Api

function note (line: Record<string, unknown>): void {
  appendFileSync(report, JSON.stringify({ ...line, seconds: Math.round((Date.now() - began) / 100) / 10 }) + '\n')
}

async function step (name: string, work: () => Promise<unknown>): Promise<void> {
  const detail = await work()
  note({ step: name, ...(detail === undefined ? {} : { detail }) })
}

async function start (): Promise<ServerProcess> {
  server = server === undefined ? await startServer(shared) : await server.restart()
  api = createApi(server.url, server.key)
  return server
}

async function get (name: string): Promise<Device> {
  const found = await api.call('GET', `/devices/${name}`)
  assert(typeof found === 'object' && found !== null)
  return Object(found)
}

const request = (name: string): Record<string, unknown> => ({
  name, image, size: '128MB', vcpus: 1, overlay_size: '64MB', devices: ['card'], entrypoint: [], cmd: ['/bin/sh', '-c', GUEST], skip_kernel_headers: true
})

async function main (): Promise<void> {
  note({ loaded: true })
  // As the test has left it, with the guests' system and an image.
  cpSync('/run/share/berth', shared.folder, { recursive: true })
  await start()
  note({ listening: true })
  await step('the card is listed with its driver', async () => {
    const all: { pci_address: string, vendor_id: string, device_id: string, current_driver: string | null }[] = Object(await api.call('GET', '/devices/available'))
    const found = all.find(({ pci_address: address }) => address === card)
    assert.equal(`${found?.vendor_id}:${found?.device_id} ${found?.current_driver}`, '8086:10d3 e1000e')
    assert(!all.some(({ pci_address: address }) => address === grouped), 'one that shares a group is not')
    return all
  })
  await step('an unknown address is not found', async () => { await assert.rejects(api.call('POST', '/devices', { pci_address: '0000:7f:1f.7' }), /404 device_not_found/) })
  await step('a group with a second device is refused', async () => { await assert.rejects(api.call('POST', '/devices', { pci_address: grouped }), /409 device_not_assignable.*holds other devices/) })
  await step('the card is registered', async () => await api.call('POST', '/devices', { pci_address: card, name: 'card' }))
  await step('a crash between bind and launch is put right', async () => { await crash() })
  await step('an instance gets the card', async () => { await api.call('POST', '/instances', request('owner')) })
  await step('the guest sees it', async () => await seen())
  await step('it is the instance\'s alone', async () => {
    const { id }: { id: string } = Object(await api.call('GET', '/instances/owner'))
    const device = await get('card')
    assert.equal(device.attached_to, id)
    assert.equal(device.bound_to_vfio, true)
    await assert.rejects(api.call('DELETE', '/devices/card'), /409 in_use/)
    await assert.rejects(api.call('POST', '/instances', request('thief')), /409 device_in_use/)
    await assert.rejects(api.call('POST', '/instances/owner/standby', {}), /409 invalid_state/)
  })
  await step('after the delete it has its driver again', async () => {
    await api.call('DELETE', '/instances/owner?graceful_shutdown=false')
    assert.equal(driver(), 'e1000e')
    assert.deepEqual(await get('card').then(({ attached_to: to, bound_to_vfio: bound }) => [to, bound]), [null, false])
    await api.call('DELETE', '/devices/card')
  })
}

/** Killed as soon as the card has left its driver, which is well before the VMM is started. */
async function crash (): Promise<void> {
  const creating = api.call('POST', '/instances', request('cut-off')).then(() => 'created', (error: unknown) => String(error))
  await until('the card is bound', () => driver() === 'vfio-pci', 60_000)
  await server?.kill()
  assert.notEqual(await creating, 'created')
  assert.equal(driver(), 'vfio-pci', 'nobody has given it back')
  await start()
  assert.deepEqual(await api.call('GET', '/instances'), [])
  assert.equal(driver(), 'e1000e')
  assert.equal((await get('card')).attached_to, null)
}

async function seen (): Promise<readonly string[]> {
  let found: readonly string[] = []
  await until('the guest has shown its devices', async () => {
    const lines: string[] = []
    for await (const line of api.lines('/instances/owner/logs?tail=1000')) lines.push(line)
    found = lines.filter((line) => line.startsWith('PCI '))
    return found.some((line) => line.includes('0x8086:0x10d3'))
  }, 180_000)
  return found
}

/** What the inner guest's kernel said last, if there is one. */
async function vmmLines (): Promise<readonly string[]> {
  if (server === undefined) return []
  const lines: string[] = []
  for await (const line of api.lines('/instances/owner/logs?source=vmm&tail=30')) lines.push(line)
  return lines
}

try {
  await main()
  note({ done: true })
} catch (error) {
  note({ failed: error instanceof Error ? error.stack : String(error), card: driver() ?? 'no driver', log: server === undefined ? '' : await lastLogLines(server.logFile, 30) })
  note({ vmm: await vmmLines().catch(String) })
} finally {
  await server?.stop()
}
