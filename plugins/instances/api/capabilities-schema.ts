// The answer of GET /capabilities.
import { Type, type Static } from 'typebox'
import { oneOf } from '../../../core/http/schemas.ts'

const closed = { additionalProperties: false } as const
const Range = Type.Object({ min: Type.Integer(), max: Type.Integer(), default: Type.Integer() }, closed)

const InstanceLimits = Type.Object({
  vcpus: Range,
  size_bytes: Range,
  overlay_size_bytes: Range
}, { ...closed, description: 'How large an instance may be by the configuration, and is when its create does not say; what the host has left is in GET /resources' })

export const Capabilities = Type.Object({
  server: Type.Object({ version: Type.String(), api_version: Type.String() }, closed),
  host: Type.Object({
    os: Type.String(),
    arch: Type.String(),
    cgroups: Type.Optional(Type.Object({
      active: Type.Boolean({ description: 'Whether the host\'s kernel keeps VMMs within limits of cpu, memory and processes' }),
      version: Type.Optional(Type.Integer()),
      reason: Type.Optional(Type.String({ description: 'Why it does not, or not all of it' }))
    }, closed))
  }, closed),
  default_runtime: Type.Object({ name: Type.String(), available: Type.Boolean() }, closed),
  runtimes: Type.Array(Type.Object({
    name: Type.String(),
    available: Type.Boolean(),
    features: Type.Array(Type.String()),
    version: Type.Optional(Type.String()),
    acceleration: Type.Optional(oneOf(['kvm', 'tcg', 'hvf'], { description: 'How guest instructions run' })),
    reason: Type.Optional(Type.String({ description: 'Why it is not available, or not at its fastest, or why VMs cannot be saved and restored' }))
  }, closed)),
  features: Type.Array(Type.String(), { description: 'What this server offers, whatever an instance runs on' }),
  network: Type.Object({
    model: oneOf(['bridge']),
    guest_to_guest: Type.Boolean({ description: 'Whether guests reach each other directly' }),
    subnet: Type.Optional(Type.String({ description: 'CIDR of the guests; absent when no guest can have a network' })),
    gateway: Type.Optional(Type.String({ description: 'Address of the host, as guests see it' }))
  }, closed),
  images: Type.Object({ default_platform: Type.String(), platforms: Type.Array(Type.String()) }, closed),
  instances: InstanceLimits
}, { ...closed, $id: 'Capabilities' })
export type Capabilities = Static<typeof Capabilities>
