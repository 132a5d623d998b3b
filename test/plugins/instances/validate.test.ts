// Each rule of a create request has its code and names the field, and the rules come in a fixed order.
import Hypeman from '@onkernel/hypeman'
import t from 'tap'
import { withDefaults } from '../../../core/config/defaults.ts'
import { BerthError } from '../../../core/errors/define.ts'
import { PluginBoard } from '../../../core/plugins/reports.ts'
import { InstancesConfig, resolveSettings, type Settings } from '../../../plugins/instances/config.ts'
import type { CreateInstance } from '../../../plugins/instances/api/schemas.ts'
import { specOf as specOfRequest, type Available } from '../../../plugins/instances/validate/create.ts'
import { createRequestOf } from '../../../plugins/instances/validate/request.ts'
import { ScriptedEgress } from './scripted-egress.ts'

const config: InstancesConfig = {
  defaults: { hypervisor: 'qemu', vcpus: 2, size: '1GB', overlaySize: '10GB' },
  limits: { maxVcpus: 16, minSize: '64MB', maxSize: '32GB', minOverlaySize: '16MB', maxOverlaySize: '100GB' },
  logs: { maxSize: '50MB', checkInterval: '5s', heartbeat: '20s' },
  memoryFiles: true,
  privateMemory: true,
  compression: { enabled: false, algorithm: 'zstd', level: 1 },
  templates: { enabled: true, maxCount: 8, maxSize: '8GB', spares: 1, maxSpares: 8, spareIdle: '10m', quiet: '1s' },
  hotStandby: { enabled: true, maxCount: 4, maxSize: '4GB', keep: '10m' },
  waking: { maxWaiting: 1000, maxWaitingPerClient: 1000, maxWaitingInAll: 8000, concurrency: 8, timeout: '1m' },
  starts: {},
  reclaim: { floorPercent: 50, floorSize: '128MB' },
  imageWait: '1ms',
  stopGrace: '1ms',
  deleteGrace: '1ms',
  vmUserBase: 2000,
  vmUserCount: 10
}
const settings = resolveSettings(config)
const plugins = new PluginBoard([], ['hypervisor-cloud-hypervisor'])
plugins.set({ id: 'hypervisor-firecracker', state: 'skipped', reason: 'the host has no command firecracker' })
const drivers = { plugins, hypervisors: new Map([['qemu', {}]]), parts: [], egress: undefined, network: undefined, resources: undefined, volumes: undefined }
const egress = new ScriptedEgress({ step: async () => {}, modeOf: () => undefined, isRunning: () => false })
const mediating = { ...drivers, network: {}, egress }
const body = (fields: Partial<CreateInstance>): CreateInstance => ({ name: 'a', image: 'b', ...fields })
/** As the API's create does. */
const specOf = (body: CreateInstance, settings: Settings, available: Available) => specOfRequest(createRequestOf(body, settings), settings, available)
const credential = (fields: object = {}) => ({ source: { env: 'REAL' }, inject: [{ as: { header: 'Authorization', format: 'Bearer ${value}' }, ...fields }] })

t.test('defaults are filled in', async (t) => {
  t.same(specOf(body({}), settings, drivers), {
    env: {}, hypervisor: 'qemu', vcpus: 2, memoryBytes: 2 ** 30, overlayBytes: 10 * 2 ** 30, skipGuestAgent: false, skipKernelHeaders: false, network: { enabled: false }, tags: {}
  })
})

t.test('a create that waits for its image is answered before the official SDK gives it up', async (t) => {
  const { imageWait } = withDefaults({ ...InstancesConfig }, {}) as InstancesConfig
  t.ok(resolveSettings({ ...config, imageWait }).imageWaitMs <= Hypeman.DEFAULT_TIMEOUT - 10_000, imageWait)
})

t.test('what is asked for is taken', async (t) => {
  const spec = specOf(body({
    size: '512MB', overlay_size: '1G', vcpus: 1, cmd: ['x'], entrypoint: [], env: { A: 'b' }, tags: { k: 'v' }, skip_guest_agent: true,
    network: { enabled: false }, hotplug_size: '0', volumes: [], devices: [], gpu: {}, credentials: {}
  }), settings, drivers)
  t.match(spec, { memoryBytes: 2 ** 29, overlayBytes: 2 ** 30, vcpus: 1, cmd: ['x'], entrypoint: [], env: { A: 'b' }, tags: { k: 'v' }, skipGuestAgent: true })
})

const refused: readonly [name: string, fields: Partial<CreateInstance>, code: string, message: RegExp][] = [
  ['a size that is none', { size: 'big' }, 'invalid_size', /^size: "big"/],
  ['a size of nothing', { size: '0' }, 'invalid_size', /^size: must be at least 64MB/],
  ['too much memory', { size: '33GB' }, 'invalid_size', /^size: must be at most 32GB/],
  ['a hotplug size that is none', { hotplug_size: '1X' }, 'invalid_hotplug_size', /^hotplug_size/],
  ['memory and hotplug over the limit', { size: '31GB', hotplug_size: '2GB' }, 'invalid_hotplug_size', /together/],
  ['an overlay that is none', { overlay_size: '-1GB' }, 'invalid_overlay_size', /^overlay_size/],
  ['an overlay too large', { overlay_size: '101GB' }, 'invalid_overlay_size', /at most 100GB/],
  ['an overlay too small', { overlay_size: '1MB' }, 'invalid_overlay_size', /at least 16MB/],
  ['hotplug memory that is over the limit once it is rounded up', { size: '32100MB', hotplug_size: '660MB' }, 'invalid_hotplug_size', /together/],
  ['a hotplug size below nothing', { hotplug_size: '-1GB' }, 'invalid_hotplug_size', /^hotplug_size: "-1GB"/],
  ['an empty hotplug size', { hotplug_size: '' }, 'invalid_hotplug_size', /^hotplug_size/],
  ['a disk rate that is none', { disk_io_bps: '100MB' }, 'invalid_disk_io_bps', /^disk_io_bps/],
  ['a disk rate of nothing', { disk_io_bps: '0MB/s' }, 'invalid_disk_io_bps', /^disk_io_bps/],
  ['a disk rate below nothing', { disk_io_bps: '-1MB/s' }, 'invalid_disk_io_bps', /^disk_io_bps/],
  ['a disk rate too small to boot', { disk_io_bps: '1KB/s' }, 'invalid_disk_io_bps', /must be 64KB\/s to 1TB\/s/],
  ['a disk rate larger than any disk', { disk_io_bps: '2TB/s' }, 'invalid_disk_io_bps', /must be 64KB\/s to 1TB\/s/],
  ['a download rate that is none', { network: { bandwidth_download: 'fast' } }, 'invalid_bandwidth_download', /^network.bandwidth_download/],
  ['an upload rate of nothing', { network: { bandwidth_upload: '0Mbps' } }, 'invalid_bandwidth_upload', /^network.bandwidth_upload/],
  ['too many processors', { vcpus: 17 }, 'invalid_request', /^vcpus: must be at most 16/],
  ['a variable name with a dash', { env: { 'A-B': 'x' } }, 'invalid_request', /^env: "A-B"/],
  ['a variable name that begins with a digit', { env: { '1A': 'x' } }, 'invalid_request', /^env: "1A"/],
  ['an empty variable name', { env: { '': 'x' } }, 'invalid_request', /^env/],
  ['too much environment', { env: { A: 'x'.repeat(131_000), B: 'x'.repeat(131_000), C: 'x'.repeat(9000) } }, 'invalid_request', /^env: all variables together/],
  ['a delay that is none', { snapshot_policy: { standby_compression_delay: 'soon' } }, 'invalid_snapshot_policy', /^snapshot_policy.standby_compression_delay: "soon" is not a duration/],
  ['a zstd level over 19', { snapshot_policy: { compression: { enabled: true, level: 20 } } }, 'invalid_snapshot_policy', /zstd takes 1 to 19, not 20/],
  ['a zstd level of 0', { snapshot_policy: { compression: { enabled: true, algorithm: 'zstd', level: 0 } } }, 'invalid_snapshot_policy', /not 0/],
  ['an lz4 level over 9', { snapshot_policy: { compression: { enabled: true, algorithm: 'lz4', level: 10 } } }, 'invalid_snapshot_policy', /lz4 takes 0 to 9/],
  ['an overlay mount that is not readonly', { volumes: [{ volume_id: 'v', mount_path: '/v', overlay: true, overlay_size: '1GB' }] }, 'invalid_request', /^volumes\[0\].readonly: must be true/],
  ['an overlay mount without a size', { volumes: [{ volume_id: 'v', mount_path: '/v', overlay: true, readonly: true }] }, 'invalid_request', /^volumes\[0\].overlay_size: required/],
  ['an overlay mount with a size that is none', { volumes: [{ volume_id: 'v', mount_path: '/v', overlay: true, readonly: true, overlay_size: 'x' }] }, 'invalid_overlay_size', /^volumes\[0\].overlay_size/],
  ['an overlay size without overlay', { volumes: [{ volume_id: 'v', mount_path: '/v', overlay_size: '1GB' }] }, 'invalid_request', /only allowed with overlay/],
  ['a relative mount path', { volumes: [{ volume_id: 'v', mount_path: 'data' }] }, 'invalid_request', /absolute path/],
  ['a mount path with ..', { volumes: [{ volume_id: 'v', mount_path: '/data/../etc' }] }, 'invalid_request', /plain path/],
  ['the root as mount path', { volumes: [{ volume_id: 'v', mount_path: '/' }] }, 'invalid_request', /system folder \//],
  ['a mount path in a system folder', { volumes: [{ volume_id: 'v', mount_path: '/etc/app' }] }, 'invalid_request', /under the system folder \/etc/],
  ['a mount path twice', { volumes: [{ volume_id: 'v', mount_path: '/d' }, { volume_id: 'w', mount_path: '/d/' }] }, 'invalid_request', /^volumes\[1\].mount_path/],
  ['a volume twice', { volumes: [{ volume_id: 'v', mount_path: '/d' }, { volume_id: 'v', mount_path: '/e' }] }, 'invalid_request', /^volumes\[1\].volume_id/],
  ['too many disks', { volumes: Array.from({ length: 24 }, (_, index) => ({ volume_id: `v${index}`, mount_path: `/d${index}` })) }, 'invalid_request', /^volumes: they need 24/],
  ['devices', { devices: ['gpu0'] }, 'plugin_disabled', /^devices needs the plugin devices/],
  ['a gpu', { gpu: { profile: 'x' } }, 'plugin_disabled', /^gpu needs the plugin devices/],
  ['volumes', { volumes: [{ volume_id: 'v', mount_path: '/v' }] }, 'plugin_disabled', /^volumes needs the plugin volumes/],
  ['a network', { network: { enabled: true } }, 'plugin_disabled', /^network.enabled needs the plugin networking/],
  ['a bandwidth', { network: { bandwidth_upload: '1Gbps' } }, 'plugin_disabled', /networking/],
  ['egress', { network: { egress: { enabled: true } } }, 'plugin_disabled', /^network.egress needs the plugin egress/],
  ['credentials', { env: { REAL: 'x' }, network: { egress: { enabled: true } }, credentials: { TOKEN: credential({ hosts: ['*.example.com', 'a.b'] }) } }, 'plugin_disabled', /^network.egress needs the plugin egress/],
  ['a disk rate', { disk_io_bps: '100MB/s' }, 'plugin_disabled', /^disk_io_bps needs the plugin resources/],
  ['hotplug memory', { hotplug_size: '1GB' }, 'plugin_disabled', /^hotplug_size needs the plugin resources/],
  ['a hypervisor that the host cannot run', { hypervisor: 'firecracker' }, 'plugin_disabled', /^hypervisor needs the plugin hypervisor-firecracker, which is skipped: the host has no command firecracker$/],
  ['a hypervisor that is turned off', { hypervisor: 'cloud-hypervisor' }, 'plugin_disabled', /^hypervisor needs the plugin hypervisor-cloud-hypervisor, which is disabled: turned off in the configuration$/],
  ['another hypervisor', { hypervisor: 'xen' }, 'plugin_disabled', /^hypervisor needs the plugin hypervisor-xen, which is not enabled on this server$/],
  ['a size before a missing plugin', { size: 'x', devices: ['a'] }, 'invalid_size', /^size/],
  ['a volume rule before a missing plugin', { devices: ['a'], volumes: [{ volume_id: 'v', mount_path: 'x' }] }, 'invalid_request', /^volumes/]
]

// Rules of the policy itself are the plugin egress's: see test/plugins/egress.
const REAL = 'secret value'
const credentials = { TOKEN: credential() }
const refusedWay: readonly [name: string, fields: Partial<CreateInstance>, code: string, message: RegExp][] = [
  ['credentials without a word of egress', { env: { REAL }, credentials }, 'invalid_request', /^credentials: need network.egress.enabled: true$/],
  ['credentials without egress', { env: { REAL }, network: { enabled: true }, credentials }, 'invalid_request', /^credentials: need network.egress.enabled: true$/],
  ['credentials with egress turned off', { env: { REAL }, network: { egress: { enabled: false } }, credentials }, 'invalid_request', /^credentials: need network.egress.enabled: true$/],
  ['credentials without a network', { env: { REAL }, network: { enabled: false, egress: { enabled: true } }, credentials }, 'invalid_request', /^credentials: need network.enabled: true$/],
  ['credentials without a network and egress', { env: { REAL }, network: { enabled: false }, credentials }, 'invalid_request', /^credentials: need network.egress.enabled: true$/],
  ['egress without a network', { network: { enabled: false, egress: { enabled: true } } }, 'invalid_request', /^network.egress.enabled: needs network.enabled: true$/],
  ['a mode without saying whether it holds', { network: { egress: { enforcement: { mode: 'all' } } } }, 'invalid_request', /^network.egress.enabled: required with network.egress.enforcement/],
  ['rules without saying whether they hold', { network: { egress: { enforcement: {} } } }, 'invalid_request', /^network.egress.enabled: required/],
  ['a policy that the plugin egress refuses', { env: { OTHER: REAL }, network: { egress: { enabled: true } }, credentials }, 'invalid_request', /^credentials.TOKEN.source.env/],
  ['a disk rate before a policy that is refused', { disk_io_bps: '1MB/s', network: { egress: { enabled: true } }, credentials }, 'plugin_disabled', /^disk_io_bps/]
]

const cases = [...refused.map((each) => [...each, drivers] as const), ...refusedWay.map((each) => [...each, mediating] as const)]
for (const [name, fields, code, message, available] of cases) {
  t.test(`${name} is refused with ${code}`, async (t) => {
    try {
      specOf(body(fields), settings, available)
      t.fail('it was accepted')
    } catch (error) {
      t.ok(error instanceof BerthError)
      t.match(error, { code, kind: 'invalid', message })
      t.notMatch(String(error), /secret/)
    }
  })
}

t.test('a mediated instance has a policy, and mocks in place of what its credentials are', async (t) => {
  const spec = specOf(body({ env: { REAL, PLAIN: 'x' }, credentials, network: { egress: { enabled: true } } }), settings, mediating)
  t.same(spec.env, { PLAIN: 'x', TOKEN: 'mock-TOKEN' })
  t.match(spec, { network: { enabled: true }, egress: { mode: 'all', credentials } })
  t.notMatch(JSON.stringify(spec), REAL)
})

t.test('a hypervisor has the feature that what a part holds needs', async (t) => {
  const parts = [{ name: 'volumes', rank: 40, needs: { feature: 'removable-disks', fields: ['volumes'] } }] as const
  const volumes = [{ volume_id: 'v', mount_path: '/data' }]
  const available = { ...drivers, parts, volumes: {} }
  t.throws(() => specOf(body({ volumes }), settings, available), { code: 'not_supported', message: 'volumes: the hypervisor qemu cannot do that' })
  t.match(specOf(body({ volumes }), settings, { ...available, hypervisors: new Map([['qemu', { features: ['removable-disks' as const] }]]) }), { volumes: [{ volumeId: 'v' }] })
  t.match(specOf(body({}), settings, available), { hypervisor: 'qemu' })
})

t.test('a create with more vCPUs than the hypervisor can have is refused', async (t) => {
  const few = { ...drivers, hypervisors: new Map([['qemu', { mostVcpus: 8 }]]) }
  t.throws(() => specOf(body({ vcpus: 9 }), settings, few), { code: 'invalid_request', message: 'vcpus: must be at most 8 with the hypervisor qemu' })
  t.match(specOf(body({ vcpus: 8 }), settings, few), { vcpus: 8 })
  t.match(specOf(body({ vcpus: 9 }), settings, drivers), { vcpus: 9 }, 'none that names no limit refuses')
})

t.test('the mode is what was asked for', async (t) => {
  const modeOf = (egress: NonNullable<CreateInstance['network']>['egress']) => specOf(body({ network: egress === undefined ? {} : { egress } }), settings, mediating).egress?.mode
  t.equal(modeOf({ enabled: true }), 'all')
  t.equal(modeOf({ enabled: true, enforcement: {} }), 'all')
  t.equal(modeOf({ enabled: true, enforcement: { mode: 'all' } }), 'all')
  t.equal(modeOf({ enabled: true, enforcement: { mode: 'http_https_only' } }), 'http_https_only')
  t.equal(modeOf({ enabled: false, enforcement: { mode: 'all' } }), undefined, 'turned off')
  t.equal(modeOf({}), undefined)
  t.equal(modeOf(undefined), undefined)
})

t.test('with a network, an instance has it unless it does without, and limits when it asks for them', async (t) => {
  const networkOf = (network: CreateInstance['network']) => specOf(body(network === undefined ? {} : { network }), settings, { ...drivers, network: {} }).network
  t.same(networkOf(undefined), { enabled: true })
  t.same(networkOf({}), { enabled: true })
  t.same(networkOf({ enabled: false }), { enabled: false })
  t.same(networkOf({ enabled: true, bandwidth_download: '8Mbps', bandwidth_upload: '1MB/s', egress: { enabled: false } }), { enabled: true, downloadBps: 1_000_000, uploadBps: 2 ** 20 })
  t.throws(() => networkOf({ enabled: false, bandwidth_upload: '1MB/s' }), { code: 'invalid_request', message: /need network.enabled: true/ })
  t.throws(() => networkOf({ egress: { enabled: true } }), { code: 'plugin_disabled', message: /^network.egress needs the plugin egress/ })
})

t.test('compression levels have the defaults and bounds of their algorithm', async (t) => {
  const policy = (compression: NonNullable<NonNullable<CreateInstance['snapshot_policy']>['compression']>) => specOf(body({ snapshot_policy: { compression } }), settings, drivers).snapshotPolicy
  t.same(policy({ enabled: true }), { compression: { enabled: true, algorithm: 'zstd', level: 1 } })
  t.same(policy({ enabled: true, algorithm: 'lz4' }), { compression: { enabled: true, algorithm: 'lz4', level: 0 } })
  t.same(policy({ enabled: true, level: 19 }), { compression: { enabled: true, algorithm: 'zstd', level: 19 } })
  t.same(policy({ enabled: true, algorithm: 'lz4', level: 9 }), { compression: { enabled: true, algorithm: 'lz4', level: 9 } })
  t.same(policy({ enabled: false, algorithm: 'lz4', level: 19 }), { compression: { enabled: false, algorithm: 'lz4', level: 19 } }, 'ignored when disabled')
})

t.test('a config whose defaults break its limits is refused', async (t) => {
  t.throws(() => { resolveSettings({ ...config, defaults: { ...config.defaults, size: '64GB' } }) }, { message: /outside of limits/ })
})
