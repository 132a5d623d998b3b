// Whatever the server tells, all of it text that somebody hostile chose: nothing of it becomes markup, on no page and in no dialog, each of which axe looks at, too.
// The server is real but for the answers with rows: no name of an instance may have such characters today.
import t, { type Test } from 'tap'
import { skipWithout } from '../../../../setup/structure/deleted.ts'
import type { Page } from '../../../helpers/browser.ts'
import { HOSTILE, HOSTILE_LINE } from './hostile.ts'
import { look } from './look.ts'
import { cannot, logIn, PATIENCE, startOperator, type Operator } from './operator.ts'

const ID = 'hostileinstance0'
const AT = '2026-01-02T03:04:05.000Z'
const [FIRST] = HOSTILE
const room = { type: FIRST, capacity: 4, effective_limit: 4, allocated: 1, available: 3, oversub_ratio: 1 }
const instance = {
  id: ID, name: HOSTILE_LINE, image: HOSTILE_LINE, state: 'Stopped', state_error: HOSTILE_LINE, created_at: AT, started_at: AT, stopped_at: AT, expires_at: null, exit_code: 1, exit_message: HOSTILE_LINE, hypervisor: FIRST, vcpus: 1, size: FIRST, overlay_size: FIRST,
  env: { [FIRST]: HOSTILE_LINE }, tags: { [FIRST]: HOSTILE_LINE }, network: { enabled: true, ip: FIRST, mac: FIRST }, volumes: [{ volume_id: FIRST, mount_path: HOSTILE_LINE }], source: { kind: 'template', id: FIRST }, has_snapshot: false, health_status: { status: FIRST, last_error: HOSTILE_LINE }
}
const running = { ...instance, id: `${ID}1`, state: 'Running', state_error: null, restore_error: HOSTILE_LINE, source: { kind: 'snapshot', id: 'gone', name: HOSTILE_LINE } }
const IMAGE = { name: `${FIRST} that nothing uses`, digest: FIRST, status: 'failed', created_at: AT, error: HOSTILE_LINE, size_bytes: 1 }
const layer = { digest: FIRST, media_type: FIRST, size_bytes: 1, created_by: HOSTILE_LINE, shared_by: 1 }
const snapshot = { id: 'hostilesnapshot0', name: HOSTILE_LINE, kind: 'Standby', source_instance_id: ID, source_instance_name: HOSTILE_LINE, created_at: AT, size_bytes: 1, compressed_size_bytes: null, compression_state: FIRST }
const request = { seq: 1, time: AT, protocol: 'http/1.1', host: HOSTILE_LINE, port: 443, method: FIRST, path: HOSTILE_LINE, status: 403, injected: [FIRST], reason: FIRST, bytes_in: 1, bytes_out: 1, duration_ms: 1 }

const taken = { pid: 1, since: AT, memory_bytes: 1, cpu_seconds: 1 }
/** Of the server's own log. */
const LOGGED = HOSTILE.map((text, index) => ({ id: `run-${index}`, time: AT, level: 'error', message: `${text}\u202e\n\u001b[2J`, fields: { plugin: text, [text]: text, err: { message: text, stack: `${text}\n    at ${text}` } } }))

/** What the server would answer, by path. */
const ANSWERS: Readonly<Record<string, unknown>> = {
  '/instances': [instance, running],
  [`/instances/${ID}`]: instance,
  [`/instances/${ID}1/egress?limit=500*`]: { mode: 'all', credentials: [FIRST], entries: [request], next: 1 },
  [`/instances/${ID}1/stats`]: { cpu_seconds: 1, memory_rss_bytes: 1, allocated_memory_bytes: 1, network_rx_bytes: 1, network_tx_bytes: 1 },
  '/snapshots': [snapshot],
  ...Object.fromEntries([ID, `${ID}1`].map((id) => [`/instances/${id}/footprint`, { instance_id: id, memory: null, memory_reason: HOSTILE_LINE, disk: { total_bytes: 1, writable_disk_bytes: 1, memory_bytes: 0, other_bytes: 0, shared_bytes: null, own_bytes: null } }])),
  '/templates': [{ id: FIRST, hypervisor: FIRST, vcpus: 1, size: HOSTILE_LINE, network: true, disk_bytes: 1, last_used_at: AT, spares: 1, instances: 1 }],
  '/images': [IMAGE],
  [`/images/${encodeURIComponent(IMAGE.name)}?details=true`]: {
    ...IMAGE, details: { layers: [layer, { ...layer, created_by: null }], layer_count: 3000, compressed_bytes: 1, shared_compressed_bytes: 1, own_compressed_bytes: 1, disk_bytes: 1, names: [HOSTILE_LINE], used_by: { total: 2, holders: [{ kind: HOSTILE_LINE, id: FIRST }, { kind: 'snapshot', id: 'hostilesnapshot0' }] } }
  },
  '/builds': [{ id: 'hostilebuild0', status: 'failed', image_ref: HOSTILE_LINE, error: HOSTILE_LINE, created_at: AT, duration_ms: 1 }],
  '/volumes': [{ id: 'hostilevolume0', name: HOSTILE_LINE, size_gb: 1, created_at: AT, attachments: [] }],
  '/devices': [{ id: 'hostiledevice0', name: HOSTILE_LINE, type: FIRST, pci_address: FIRST, vendor_id: FIRST, device_id: FIRST, iommu_group: 1, attached_to: null }],
  '/devices/available': [{ pci_address: FIRST, vendor_name: FIRST, device_name: HOSTILE_LINE, current_driver: null }],
  '/ingresses': [{ id: 'hostileingress0', name: HOSTILE_LINE, rules: [{ match: { hostname: HOSTILE_LINE }, target: { instance: HOSTILE_LINE, port: 1 } }], created_at: AT, served: true }],
  '/keys': [{ id: 'hostilekey0', name: HOSTILE_LINE, scopes: [FIRST], status: 'active', created_at: AT, expires_at: null, last_used_at: null }],
  '/webhooks': [{ id: 'hostilewebhook0', url: HOSTILE_LINE, status: 'failing', enabled: true, failed_attempts: 1, last_error: { message: HOSTILE_LINE }, last_delivery: null }],
  '/resources': { cpu: room, memory: room, disk: room, network: room, disk_breakdown: { [FIRST]: 1 }, allocations: [{ instance_id: ID, instance_name: HOSTILE_LINE, cpu: 1, memory_bytes: 1, disk_bytes: 1 }], cgroups: { active: false, reason: HOSTILE_LINE } },
  '/capabilities': { server: { version: FIRST, api_version: FIRST }, host: { os: FIRST, arch: FIRST }, default_runtime: { name: FIRST }, runtimes: [{ name: HOSTILE_LINE, available: false, version: FIRST, acceleration: FIRST, reason: HOSTILE_LINE }], network: { subnet: FIRST } },
  '/plugins': [{ id: HOSTILE_LINE, state: 'skipped', reason: HOSTILE_LINE, start_ms: null }, { id: 'host', state: 'started', reason: null, start_ms: 1 }],
  '/host/checks': { checked_at: AT, took_ms: 1, checks: [{ subject: FIRST, verdict: 'failed', found: HOSTILE_LINE, remedy: HOSTILE_LINE }] },
  '/host/processes': { server: taken, processes: [{ ...taken, name: HOSTILE_LINE, plugin: FIRST, instance_id: ID, state: FIRST, restarts: 1, last_end: { at: AT, reason: HOSTILE_LINE }, children: [{ ...taken, command: FIRST }] }] }
}

/** Pages, and the button of each dialog that they have. */
const DIALOGS: Readonly<Record<string, readonly (string | RegExp)[]>> = {
  instances: ['Create instance'], egress: ['Try a policy', /^Why /], family: [/^Fork /, /^Cost of /, /^Details of /, /^Delete .*Template/, /^Delete /], images: ['Pull image', /^Details of /, /^Delete /], builds: ['Build an image', /^Delete /], snapshots: [/^Fork /, /^Delete /], volumes: ['Create volume', /^Delete /], devices: ['Register device', /^Unregister /],
  ingresses: ['Create ingress', /^Delete /], keys: ['Make a key', /^Revoke /], webhooks: ['Create webhook', /^Delete /], host: [], 'host/checks': [], 'host/processes': [], 'host/log': [], 'host/plugins': []
}
const SIDES = ['overview', 'snapshots', 'code'] as const
const reason = cannot() || skipWithout('builds', 'devices', 'egress', 'host', 'resources', 'snapshots', 'volumes')

if (reason === false) await t.test('everything that the server tells is hostile', { timeout: 600_000 }, work)
else t.plan(0, reason)

async function work (t: Test): Promise<void> {
  const operator = await startOperator(t, { resources: { config: {} } })
  const { page, server } = operator
  for (const [path, answer] of Object.entries(ANSWERS)) await page.route(server.url + path, async (route) => { await route.fulfill({ status: 200, contentType: 'application/json', body: JSON.stringify(answer) }) })
  await page.route(`${server.url}/host/log/stream*`, async (route) => { await route.fulfill({ status: 200, contentType: 'text/event-stream', body: `retry: 600000\n${LOGGED.map((line) => `id: ${line.id}\ndata: ${JSON.stringify(line)}\n\n`).join('')}` }) })
  await logIn(operator)
  for (const [place, dialogs] of Object.entries(DIALOGS)) {
    await t.test(place, async (t) => {
      await look(t, operator, { place, shown: FIRST, name: `hostile-${place}` })
      for (const [index, name] of dialogs.entries()) await openDialog(t, operator, `dialog-${place}-${index}`, name)
    })
  }
  for (const side of SIDES) await t.test(side, async (t) => { await look(t, operator, { place: `instances/${ID}/${side}`, shown: FIRST, name: `hostile-instance-${side}` }) })
  await t.test('deletion of several', async (t) => { await selects(t, operator) })
}

async function openDialog (t: Test, operator: Operator, name: string, button: string | RegExp): Promise<void> {
  await operator.page.locator('main').getByRole('button', { name: button }).first().click()
  await isWell(t, operator, name)
  if (String(button).includes(' of ')) t.match(await operator.page.locator('dialog').innerText(), HOSTILE_LINE, `${name}: what is told of it stands there as text`)
  await operator.page.keyboard.press('Escape')
  await operator.page.locator('dialog').waitFor({ state: 'hidden' })
}

async function isWell (t: Test, operator: Operator, name: string): Promise<void> {
  const { page } = operator
  await page.locator('dialog').waitFor(PATIENCE)
  await settled(page)
  await look(t, operator, { name, isOpen: true })
}

/** What a form may have is read first. */
async function settled (page: Page): Promise<void> {
  await page.locator('dialog .wait').first().waitFor({ state: 'hidden', ...PATIENCE })
}

async function selects (t: Test, operator: Operator): Promise<void> {
  const { page } = operator
  await look(t, operator, { place: 'instances', shown: FIRST, name: 'hostile-selected', act: async () => { await page.getByLabel('Select all').click() } })
  await page.getByRole('region', { name: 'Selected instances' }).getByRole('button', { name: 'Delete' }).click()
  await isWell(t, operator, 'dialog-delete')
  t.match(await page.locator('dialog').innerText(), HOSTILE_LINE)
}
