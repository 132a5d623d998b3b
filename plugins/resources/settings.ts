// The config turned into what the code works with: sizes in bytes, rates in bytes per second.
import { sizeBytes } from '../../core/config/quantities.ts'
import { parseRate } from '../../core/units.ts'
import type { ResourcesConfig } from './config.ts'

export interface Settings {
  /** absent: detected */
  readonly capacity: { readonly cpu?: number, readonly memoryBytes?: number, readonly diskBytes?: number, readonly diskIoBps?: number }
  readonly reserve: { readonly cpu: number, readonly memoryBytes: number, readonly diskBytes: number }
  readonly ratio: ResourcesConfig['oversubscription']
  readonly overcommit: ResourcesConfig['overcommit']
  readonly cgroups: Omit<ResourcesConfig['cgroups'], 'memoryOverhead'> & { readonly memoryOverheadBytes: number }
}

/** @throws Error that names the field */
export function resolveSettings ({ capacity, reserve, oversubscription, overcommit, cgroups }: ResourcesConfig): Settings {
  const { memoryOverhead, ...groups } = cgroups
  return {
    capacity: {
      ...capacity.cpu === undefined ? {} : { cpu: capacity.cpu },
      ...capacity.memory === undefined ? {} : { memoryBytes: sizeBytes(capacity.memory) },
      ...capacity.disk === undefined ? {} : { diskBytes: sizeBytes(capacity.disk) },
      ...capacity.diskIo === undefined ? {} : { diskIoBps: rate('capacity.diskIo', capacity.diskIo) }
    },
    reserve: { cpu: reserve.cpu, memoryBytes: sizeBytes(reserve.memory), diskBytes: sizeBytes(reserve.disk) },
    ratio: oversubscription,
    overcommit,
    cgroups: { ...groups, memoryOverheadBytes: sizeBytes(memoryOverhead) }
  }
}

function rate (field: string, text: string): number {
  const parsed = parseRate(text)
  if (parsed === undefined || parsed === 0) throw new Error(`plugins.resources.config.${field}: ${text} is no rate`)
  return parsed
}
