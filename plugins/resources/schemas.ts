// The answer of GET /resources.
import { Type, type Static } from 'typebox'
import { nullable, oneOf } from '../../core/http/schemas.ts'

const closed = { additionalProperties: false } as const

const ResourceStatus = Type.Object({
  type: Type.String(),
  capacity: Type.Number({ description: 'What the host has' }),
  effective_limit: Type.Number({ description: 'What may be promised: without the reserve, times oversub_ratio' }),
  allocated: Type.Number(),
  available: Type.Number({ description: 'effective_limit less allocated; of the disk, with overcommit.disk, no more than is really free' }),
  oversub_ratio: Type.Number(),
  source: Type.Optional(Type.String({ description: 'configured, detected, or unknown: then there is no limit' })),
  reason: Type.Optional(Type.String({ description: 'Why it is unknown' }))
}, { ...closed, $id: 'ResourceStatus' })
export type ResourceStatus = Static<typeof ResourceStatus>

export const ResourcesView = Type.Object({
  cpu: ResourceStatus,
  memory: ResourceStatus,
  disk: ResourceStatus,
  network: ResourceStatus,
  disk_io: Type.Optional(ResourceStatus),
  gpu: nullable(Type.Object({
    mode: oneOf(['vgpu', 'passthrough']),
    total_slots: Type.Integer(),
    used_slots: Type.Integer(),
    profiles: Type.Array(Type.Object({ name: Type.String(), framebuffer_mb: Type.Integer(), available: Type.Integer() }, closed)),
    devices: Type.Array(Type.Object({ name: Type.String(), available: Type.Boolean() }, closed))
  }, closed)),
  disk_breakdown: Type.Object({
    images_bytes: Type.Number(),
    oci_cache_bytes: Type.Number(),
    volumes_bytes: Type.Number(),
    overlays_bytes: Type.Number()
  }, closed),
  allocations: Type.Array(Type.Object({
    instance_id: Type.String(),
    instance_name: Type.String(),
    cpu: Type.Number(),
    memory_bytes: Type.Number(),
    disk_bytes: Type.Number(),
    network_download_bps: Type.Number({ description: 'Bytes per second; 0: no limit' }),
    network_upload_bps: Type.Number(),
    disk_io_bps: Type.Number()
  }, closed)),
  kept: Type.Object({
    vms: Type.Integer(),
    memory_bytes: Type.Number({ description: 'Memory of their guests' })
  }, { ...closed, description: 'Paused VMs of instances in standby. They count as free: they are ended when somebody needs the room' }),
  cgroups: Type.Object({
    active: Type.Boolean({ description: 'Whether the host\'s kernel keeps VMMs within limits of cpu, memory and processes' }),
    version: Type.Optional(Type.Integer()),
    controllers: Type.Optional(Type.Array(Type.String())),
    reason: Type.Optional(Type.String({ description: 'Why it does not, or not all of it' }))
  }, closed)
}, { ...closed, $id: 'Resources' })
export type ResourcesView = Static<typeof ResourcesView>
