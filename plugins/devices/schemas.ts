// The shapes of requests and answers about devices.
import { Type, type Static } from 'typebox'
import { listQuery, NameQuery, TagsQuery } from '../../core/http/list.ts'
import { nullable, oneOf, Tags, Timestamp } from '../../core/http/schemas.ts'

const closed = { additionalProperties: false } as const

/** Name and address are plain strings here, since their faults have codes of their own: invalid_name and invalid_pci_address. */
export const CreateDevice = Type.Object({
  pci_address: Type.String({ maxLength: 255, description: 'Such as 0000:a2:00.0; the domain may be left out' }),
  name: Type.Optional(Type.String({ maxLength: 255, description: 'Unique; made of the address when absent' })),
  tags: Type.Optional(Tags)
}, { ...closed, $id: 'CreateDevice' })
export type CreateDevice = Static<typeof CreateDevice>

export const DeviceView = Type.Object({
  id: Type.String(),
  name: Type.String(),
  type: oneOf(['gpu', 'pci']),
  pci_address: Type.String(),
  vendor_id: Type.String({ description: 'Four hex digits' }),
  device_id: Type.String({ description: 'Four hex digits' }),
  iommu_group: Type.Integer({ description: 'Of a device that is no longer on the host: the last one, or -1, since that number may be another group\'s by now' }),
  bound_to_vfio: Type.Boolean({ description: 'Whether the driver vfio-pci has it now' }),
  attached_to: nullable(Type.String()),
  created_at: Timestamp,
  tags: Type.Optional(Type.Record(Type.String(), Type.String()))
}, { ...closed, $id: 'Device' })
export type DeviceView = Static<typeof DeviceView>

export const DeviceList = Type.Array(DeviceView)

export const AvailableDevice = Type.Object({
  pci_address: Type.String(),
  vendor_id: Type.String(),
  device_id: Type.String(),
  iommu_group: Type.Integer(),
  vendor_name: Type.Optional(Type.String()),
  device_name: Type.Optional(Type.String()),
  current_driver: nullable(Type.String())
}, { ...closed, $id: 'AvailableDevice' })
export type AvailableDevice = Static<typeof AvailableDevice>

export const AvailableList = Type.Array(AvailableDevice)

export const ListDevicesQuery = Type.Object({ ...listQuery(['created_at', 'name'], 'created_at'), ...TagsQuery, ...NameQuery }, closed)
export type ListDevicesQuery = Static<typeof ListDevicesQuery>

/** `:id` is an id, a name, or the beginning of an id. */
export const DeviceRef = Type.Object({ id: Type.String({ minLength: 1, maxLength: 191 }) }, closed)
