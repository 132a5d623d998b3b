// `volumes` of a file.
import { parseSize } from '../../core/units.ts'
import { tagsOf } from './maps.ts'
import type { VolumeModel } from './model.ts'
import type { Place } from './place.ts'

export const VOLUME_FIELDS = ['name', 'external', 'labels'] as const
const X_FIELDS = ['size'] as const
const GB = 2 ** 30
/** size of a volume whose file gives none: it only takes the space that is written */
const DEFAULT_GB = 10

export function volumesOf (place: Place | undefined, project: string): Map<string, VolumeModel> {
  return new Map(place?.entries().map(([key, volume]) => {
    const fields = volume.fields([...VOLUME_FIELDS, 'x-berth'], { driver: 'a volume is a disk', driver_opts: 'a volume is a disk; its size is x-berth.size' })
    const external = fields.get('external')?.flag() ?? false
    const size = fields.get('x-berth')?.fields(X_FIELDS).get('size')
    if (external && size !== undefined) throw size.refusal('a volume that is external has its size')
    return [key, { key, name: fields.get('name')?.text() ?? (external ? key : `${project}_${key}`), external, sizeGb: size === undefined ? DEFAULT_GB : gigabytes(size), tags: tagsOf(fields.get('labels')) }]
  }))
}

function gigabytes (place: Place): number {
  const bytes = parseSize(place.text())
  if (bytes === undefined || bytes === 0) throw place.refusal('must be a size, as 512MB or 20GB')
  return bytes / GB
}
