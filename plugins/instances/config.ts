// The plugin's config schema, and the one function that turns it into the settings the code works with.
import { Type, type Static } from 'typebox'
import { oneOf } from '../../core/http/schemas.ts'
import { parseSize } from '../../core/units.ts'
import type { HypervisorName } from '../../core/contracts/hypervisor.ts'

export const HYPERVISORS = ['cloud-hypervisor', 'firecracker', 'qemu', 'vz'] as const satisfies readonly HypervisorName[]

const size = (fallback: string, description: string) => Type.String({ default: fallback, description })

export const InstancesConfig = Type.Object({
  defaults: Type.Object({
    hypervisor: oneOf(HYPERVISORS, { default: 'qemu', description: 'Used when a request names none' }),
    vcpus: Type.Integer({ minimum: 1, default: 2 }),
    size: size('1GB', 'Memory of a VM'),
    overlaySize: size('10GB', 'Size of the writable disk; it takes only the space that is written')
  }, { additionalProperties: false, default: {} }),
  limits: Type.Object({
    maxVcpus: Type.Integer({ minimum: 1, default: 16 }),
    minSize: size('64MB', 'Less does not boot the guest kernel'),
    maxSize: size('32GB', 'Most memory of one VM'),
    minOverlaySize: size('16MB', 'Less is no usable file system'),
    maxOverlaySize: size('100GB', 'Largest writable disk')
  }, { additionalProperties: false, default: {} }),
  logs: Type.Object({
    maxSize: size('50MB', 'A log file is rotated once it is larger; one old file is kept'),
    checkIntervalMs: Type.Integer({ minimum: 100, default: 5000, description: 'How often sizes are looked at' }),
    heartbeatMs: Type.Integer({ minimum: 1000, default: 20_000, description: 'A comment keeps a silent stream open' })
  }, { additionalProperties: false, default: {} }),
  imageWaitMs: Type.Integer({ minimum: 0, default: 60_000, description: 'How long a create waits for its image' }),
  stopGraceMs: Type.Integer({ minimum: 0, default: 5000, description: 'Time between SIGTERM and SIGKILL of a stop' }),
  deleteGraceMs: Type.Integer({ minimum: 0, default: 2000, description: 'The same for a graceful delete' }),
  vmUserBase: Type.Integer({
    minimum: 1000,
    maximum: 2_147_000_000,
    default: 1_900_000_000,
    description: 'First user id of VMs. Each instance runs under its own, when the server itself runs as root'
  }),
  vmUserCount: Type.Integer({ minimum: 1, maximum: 100_000, default: 10_000, description: 'How many user ids there are' })
}, { additionalProperties: false })

export type InstancesConfig = Static<typeof InstancesConfig>

/** The config with every size in bytes. */
export interface Settings {
  readonly defaults: { readonly hypervisor: HypervisorName, readonly vcpus: number, readonly memoryBytes: number, readonly overlayBytes: number }
  readonly limits: {
    readonly maxVcpus: number
    readonly minMemoryBytes: number
    readonly maxMemoryBytes: number
    readonly minOverlayBytes: number
    readonly maxOverlayBytes: number
  }
  readonly logs: { readonly maxBytes: number, readonly checkIntervalMs: number, readonly heartbeatMs: number }
  readonly imageWaitMs: number
  readonly stopGraceMs: number
  readonly deleteGraceMs: number
  readonly vmUserBase: number
  readonly vmUserCount: number
}

/** @throws when a size of the config is none, or a default breaks a limit */
export function resolveSettings (config: InstancesConfig): Settings {
  const bytes = (place: string, text: string): number => {
    const parsed = parseSize(text)
    if (parsed === undefined || parsed <= 0) throw new Error(`plugins.instances.config.${place}: "${text}" is not a size such as 1GB or 512MB`)
    return parsed
  }
  const { defaults, limits, logs, ...rest } = config
  const settings: Settings = {
    ...rest,
    defaults: {
      hypervisor: defaults.hypervisor,
      vcpus: defaults.vcpus,
      memoryBytes: bytes('defaults.size', defaults.size),
      overlayBytes: bytes('defaults.overlaySize', defaults.overlaySize)
    },
    limits: {
      maxVcpus: limits.maxVcpus,
      minMemoryBytes: bytes('limits.minSize', limits.minSize),
      maxMemoryBytes: bytes('limits.maxSize', limits.maxSize),
      minOverlayBytes: bytes('limits.minOverlaySize', limits.minOverlaySize),
      maxOverlayBytes: bytes('limits.maxOverlaySize', limits.maxOverlaySize)
    },
    logs: { ...logs, maxBytes: bytes('logs.maxSize', logs.maxSize) }
  }
  const { defaults: d, limits: l } = settings
  if (d.memoryBytes > l.maxMemoryBytes || d.memoryBytes < l.minMemoryBytes || d.overlayBytes > l.maxOverlayBytes ||
    d.overlayBytes < l.minOverlayBytes || d.vcpus > l.maxVcpus) throw new Error('plugins.instances.config.defaults: a default lies outside of limits')
  return settings
}
