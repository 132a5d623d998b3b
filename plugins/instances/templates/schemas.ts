// Templates as the API shows them.
import { Type, type Static } from 'typebox'
import { formatSize } from '../../../core/units.ts'
import type { TemplateFacts } from './contract.ts'

const closed = { additionalProperties: false } as const

export const TemplateView = Type.Object({
  id: Type.String(),
  hypervisor: Type.String(),
  vcpus: Type.Integer(),
  size: Type.String({ description: 'Memory of its VMs' }),
  network: Type.Boolean({ description: 'Whether its VMs have one' }),
  disk_bytes: Type.Integer({ description: 'Memory and state on the disk; it takes no memory' }),
  last_used_at: Type.String({ format: 'date-time' }),
  spares: Type.Integer({ description: 'Paused VMs of it that are ready to become instances; each has its memory' }),
  instances: Type.Integer({ description: 'Instances that were made of it' })
}, { ...closed, $id: 'Template' })
export type TemplateView = Static<typeof TemplateView>

export const TemplateList = Type.Array(TemplateView)
export const TemplatePath = Type.Object({ id: Type.String({ minLength: 1, maxLength: 64 }) }, closed)

export function templateView ({ template, bytes, lastUsedAt, spares }: TemplateFacts, instances: number): TemplateView {
  const { key, hypervisor, vcpus, memoryBytes, network } = template
  return { id: key, hypervisor, vcpus, size: formatSize(memoryBytes), network: network?.enabled === true, disk_bytes: bytes, last_used_at: new Date(lastUsedAt).toISOString(), spares, instances }
}
