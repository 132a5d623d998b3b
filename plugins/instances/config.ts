// The plugin's config schema, and the one function that turns it into the settings the code works with.
import { Type, type Static } from 'typebox'
import { oneOf } from '../../core/http/schemas.ts'
import { durationMs, sizeBytes } from '../../core/config/quantities.ts'
import { Duration, LongDuration, Size } from '../../core/config/schema.ts'
import { HypervisorName } from '../../core/library/hypervisor-name.ts'
import type { Compression } from '../../core/library/compressed-memory.ts'
import { checkCompression } from './validate/snapshot-policy.ts'

export const InstancesConfig = Type.Object({
  defaults: Type.Object({
    hypervisor: HypervisorName({ default: 'qemu', description: 'Used when a request names none' }),
    vcpus: Type.Integer({ minimum: 1, default: 2, description: 'virtual CPUs of an instance that names no number' }),
    size: Size('1GB', 'Memory of a VM'),
    overlaySize: Size('10GB', 'Size of the writable disk; it takes only the space that is written')
  }, { additionalProperties: false, default: {} }),
  limits: Type.Object({
    maxVcpus: Type.Integer({ minimum: 1, default: 16, description: 'largest number of virtual CPUs' }),
    minSize: Size('64MB', 'Less does not boot the guest kernel'),
    maxSize: Size('32GB', 'Most memory of one VM'),
    minOverlaySize: Size('16MB', 'Less is no usable file system'),
    maxOverlaySize: Size('100GB', 'Largest writable disk')
  }, { additionalProperties: false, default: {} }),
  logs: Type.Object({
    maxSize: Size('50MB', 'A log file is rotated once it is larger; one old file is kept'),
    checkInterval: Duration('5s', 'How often sizes are looked at'),
    heartbeat: Duration('20s', 'A comment keeps a silent stream open')
  }, { additionalProperties: false, default: {} }),
  memoryFiles: Type.Boolean({ default: false, description: 'VMs keep their memory in a file from their boot on: the first standby is then as quick as later ones, and the boot slower' }),
  privateMemory: Type.Boolean({ default: true, description: 'VMs that are made of a template, of each other or of a snapshot share its memory file, where the VMM can: an image holds only what differs. Such a VM gives no memory back to the host while it runs' }),
  compression: Type.Object({
    enabled: Type.Boolean({ default: false, description: 'Compress memory images in the background, where neither the request nor the policy of the instance says otherwise' }),
    algorithm: oneOf(['zstd', 'lz4'], { default: 'zstd', description: 'zstd gives smaller files, lz4 is quicker' }),
    level: Type.Integer({ minimum: 0, maximum: 19, default: 1, description: 'zstd 1 to 19, lz4 0 to 9' })
  }, { additionalProperties: false, default: {} }),
  templates: Type.Object({
    enabled: Type.Boolean({ default: true, description: 'A shape that has booted once is kept as a template, of which later instances are made in a fraction of that time' }),
    maxCount: Type.Integer({ minimum: 1, default: 8, description: 'Most templates; the one that was not used for longest goes' }),
    maxSize: Size('8GB', 'Most disk space of all templates'),
    spares: Type.Integer({ minimum: 0, default: 1, description: 'VMs of a shape, or forks of a snapshot, that are kept ready, paused, to become the next instances of it; after a burst, as many as it would have taken. 0: none' }),
    maxSpares: Type.Integer({ minimum: 0, default: 8, description: 'The same for all together; each takes some 100 MB of memory' }),
    spareIdle: LongDuration('10m', 'How long one is kept that nobody needs'),
    quiet: Duration('1s', 'A template is made once no VM has come up for this time, a spare VM after a tenth of it')
  }, { additionalProperties: false, default: {} }),
  hotStandby: Type.Object({
    enabled: Type.Boolean({ default: true, description: 'The VM of an instance that went to standby stays for a while, paused, so that a restore goes on with it in a fraction of the time' }),
    maxCount: Type.Integer({ minimum: 0, default: 4, description: 'Most VMs that are kept so; the one that was put to standby first goes' }),
    maxSize: Size('4GB', 'Most memory of their guests'),
    keep: LongDuration('10m', 'How long one is kept')
  }, { additionalProperties: false, default: {} }),
  waking: Type.Object({
    maxWaiting: Type.Integer({ minimum: 1, maximum: 100_000, default: 1000, description: 'Most callers that wait for one instance to be awake' }),
    maxWaitingPerClient: Type.Integer({ minimum: 1, maximum: 1_000_000, default: 1000, description: 'Most requests and connections of one client address that wait for instances to be awake' }),
    maxWaitingInAll: Type.Integer({ minimum: 1, maximum: 1_000_000, default: 8000, description: 'Most callers of all together that wait for instances to be awake' }),
    concurrency: Type.Integer({ minimum: 1, maximum: 1000, default: 8, description: 'How many instances are woken at a time, beside those that are restored by hand; clients take turns' }),
    timeout: Duration('1m', 'How long a caller waits for an instance to be awake')
  }, { additionalProperties: false, default: {} }),
  starts: Type.Object({
    concurrency: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'How many VMs come up at once; keys take turns. Without it, as many as there are processors, and 2 at least' }))
  }, { additionalProperties: false, default: {} }),
  reclaim: Type.Object({
    floorPercent: Type.Integer({ minimum: 1, maximum: 100, default: 50, description: 'Of its memory, what a guest keeps when the host asks for some' }),
    floorSize: Size('128MB', 'What it keeps at least')
  }, { additionalProperties: false, default: {} }),
  imageWait: Duration('45s', 'How long a create waits for its image. Clients such as the official SDKs give up after a minute'),
  stopGrace: Duration('5s', 'Time between SIGTERM and SIGKILL of a stop'),
  deleteGrace: Duration('2s', 'The same for a graceful delete'),
  vmUserBase: Type.Integer({
    minimum: 1000,
    maximum: 2_147_000_000,
    default: 1_900_000_000,
    description: 'First user id of VMs. Each VM runs under its own, when the server itself runs as root'
  }),
  vmUserCount: Type.Integer({ minimum: 1, maximum: 100_000, default: 10_000, description: 'How many user ids there are, and so how many VMs there may be at a time' })
}, { additionalProperties: false })

export type InstancesConfig = Static<typeof InstancesConfig>

/** The config with every size in bytes and every time in milliseconds. */
export interface Settings {
  readonly defaults: { readonly hypervisor: string, readonly vcpus: number, readonly memoryBytes: number, readonly overlayBytes: number }
  readonly limits: {
    readonly maxVcpus: number
    readonly minMemoryBytes: number
    readonly maxMemoryBytes: number
    readonly minOverlayBytes: number
    readonly maxOverlayBytes: number
  }
  readonly logs: { readonly maxBytes: number, readonly checkIntervalMs: number, readonly heartbeatMs: number }
  /** whether VMs that boot keep their memory in a file */
  readonly memoryFiles: boolean
  /** whether VMs share the memory file of what they are made of, where the VMM can */
  readonly privateMemory: boolean
  /** of memory images, where nobody says otherwise; absent: none */
  readonly compression?: Compression
  readonly templates: {
    readonly enabled: boolean
    readonly maxCount: number
    readonly maxBytes: number
    readonly spares: number
    readonly maxSpares: number
    readonly spareIdleMs: number
    readonly quietMs: number
  }
  /** VMs that are kept in standby; off: `maxCount` is 0 */
  readonly hotStandby: { readonly maxCount: number, readonly maxBytes: number, readonly keepMs: number }
  readonly waking: { readonly maxWaiting: number, readonly maxWaitingPerClient: number, readonly maxWaitingInAll: number, readonly concurrency: number, readonly timeoutMs: number }
  /** how many VMs come up at once; absent: by the processors */
  readonly startsAtOnce?: number
  /** what a guest keeps of its memory when the host asks for some: the larger one */
  readonly reclaim: { readonly percent: number, readonly bytes: number }
  readonly imageWaitMs: number
  readonly stopGraceMs: number
  readonly deleteGraceMs: number
  readonly vmUserBase: number
  readonly vmUserCount: number
}

/** @throws when a default breaks a limit */
export function resolveSettings (config: InstancesConfig): Settings {
  const { defaults, limits, logs } = config
  const settings: Settings = {
    defaults: {
      hypervisor: defaults.hypervisor,
      vcpus: defaults.vcpus,
      memoryBytes: sizeBytes(defaults.size),
      overlayBytes: sizeBytes(defaults.overlaySize)
    },
    limits: {
      maxVcpus: limits.maxVcpus,
      minMemoryBytes: sizeBytes(limits.minSize),
      maxMemoryBytes: sizeBytes(limits.maxSize),
      minOverlayBytes: sizeBytes(limits.minOverlaySize),
      maxOverlayBytes: sizeBytes(limits.maxOverlaySize)
    },
    logs: { maxBytes: sizeBytes(logs.maxSize), checkIntervalMs: durationMs(logs.checkInterval), heartbeatMs: durationMs(logs.heartbeat) },
    memoryFiles: config.memoryFiles,
    privateMemory: config.privateMemory,
    ...compressionOf(config.compression),
    templates: templatesOf(config.templates),
    hotStandby: hotStandbyOf(config.hotStandby),
    waking: { maxWaiting: config.waking.maxWaiting, maxWaitingPerClient: config.waking.maxWaitingPerClient, maxWaitingInAll: config.waking.maxWaitingInAll, concurrency: config.waking.concurrency, timeoutMs: durationMs(config.waking.timeout) },
    ...config.starts.concurrency === undefined ? {} : { startsAtOnce: config.starts.concurrency },
    reclaim: { percent: config.reclaim.floorPercent, bytes: sizeBytes(config.reclaim.floorSize) },
    imageWaitMs: durationMs(config.imageWait),
    stopGraceMs: durationMs(config.stopGrace),
    deleteGraceMs: durationMs(config.deleteGrace),
    vmUserBase: config.vmUserBase,
    vmUserCount: config.vmUserCount
  }
  const { defaults: d, limits: l } = settings
  if (d.memoryBytes > l.maxMemoryBytes || d.memoryBytes < l.minMemoryBytes || d.overlayBytes > l.maxOverlayBytes ||
    d.overlayBytes < l.minOverlayBytes || d.vcpus > l.maxVcpus) throw new Error('plugins.instances.config.defaults: a default lies outside of limits')
  return settings
}

function compressionOf ({ enabled, algorithm, level }: InstancesConfig['compression']): Pick<Settings, 'compression'> {
  checkCompression('plugins.instances.config.compression', { enabled, algorithm, level })
  return enabled ? { compression: { algorithm, level } } : {}
}

function hotStandbyOf ({ enabled, maxCount, maxSize, keep }: InstancesConfig['hotStandby']): Settings['hotStandby'] {
  return { maxCount: enabled ? maxCount : 0, maxBytes: sizeBytes(maxSize), keepMs: durationMs(keep) }
}

function templatesOf ({ enabled, maxCount, maxSize, spares, maxSpares, spareIdle, quiet }: InstancesConfig['templates']): Settings['templates'] {
  return { enabled, maxCount, maxBytes: sizeBytes(maxSize), spares, maxSpares, spareIdleMs: durationMs(spareIdle), quietMs: durationMs(quiet) }
}
