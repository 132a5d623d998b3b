// Rules of volume mounts that need no look at the volumes themselves.
import { InvalidRequest } from '../../../core/errors/common.ts'
import { formatSize } from '../../../core/units.ts'
import type { Settings } from '../config.ts'
import { InvalidOverlaySize } from '../errors.ts'
import type { VolumeSpec } from '../model/record.ts'
import type { CreateInstance } from '../api/schemas.ts'
import { sizeOf } from './sizes.ts'

const SYSTEM_FOLDERS = [
  '/', '/bin', '/boot', '/dev', '/etc', '/lib', '/lib64', '/proc', '/root', '/run', '/sbin', '/sys', '/tmp', '/usr', '/var'
]
// The names vdd to vdz in the guest; a volume with an overlay takes two.
export const MAX_DEVICES = 23
const MIB = 2 ** 20

/**
 * The volumes of a request, by the names that the caller used. @throws InvalidRequest or invalid_overlay_size naming the mount
 */
export function checkVolumes (volumes: CreateInstance['volumes'], settings: Settings): readonly VolumeSpec[] {
  const specs: VolumeSpec[] = []
  const ids = new Set<string>()
  const paths = new Set<string>()
  let devices = 0
  for (const [index, mount] of (volumes ?? []).entries()) {
    const place = `volumes[${index}]`
    const overlayBytes = checkOverlay(place, mount, settings)
    const path = checkMountPath(`${place}.mount_path`, mount.mount_path)
    if (paths.has(path)) throw InvalidRequest(`${place}.mount_path: ${path} is used by another volume of this request`)
    if (ids.has(mount.volume_id)) throw InvalidRequest(`${place}.volume_id: the same volume is in this request twice`)
    paths.add(path)
    ids.add(mount.volume_id)
    devices += mount.overlay === true ? 2 : 1
    specs.push({ volumeId: mount.volume_id, mountPath: path, readonly: mount.readonly ?? false, place: index, generation: 0, ...(overlayBytes === undefined ? {} : { overlayBytes }) })
  }
  if (devices > MAX_DEVICES) throw InvalidRequest(`volumes: they need ${devices} disks; a VM takes at most ${MAX_DEVICES} (a volume with overlay counts twice)`)
  return specs
}

type Mount = NonNullable<CreateInstance['volumes']>[number]

function checkOverlay (place: string, mount: Mount, settings: Settings): number | undefined {
  if (mount.overlay !== true) {
    if (mount.overlay_size !== undefined) throw InvalidRequest(`${place}.overlay_size: only allowed with overlay: true`)
    return undefined
  }
  if (mount.readonly !== true) throw InvalidRequest(`${place}.readonly: must be true with overlay: true`)
  if (mount.overlay_size === undefined) throw InvalidRequest(`${place}.overlay_size: required with overlay: true`)
  const bytes = sizeOf(`${place}.overlay_size`, mount.overlay_size, InvalidOverlaySize)
  const { minOverlayBytes, maxOverlayBytes } = settings.limits
  if (bytes < minOverlayBytes || bytes > maxOverlayBytes) {
    throw InvalidOverlaySize(`${place}.overlay_size`, `must be between ${formatSize(minOverlayBytes)} and ${formatSize(maxOverlayBytes)}`)
  }
  return Math.ceil(bytes / MIB) * MIB
}

function withoutEndSlashes (path: string): string {
  let end = path.length
  while (path[end - 1] === '/') end--
  return path.slice(0, end)
}

/** The path as it is stored. @throws InvalidRequest */
export function checkMountPath (place: string, text: string): string {
  const path = text.length > 1 ? withoutEndSlashes(text) : text
  const segments = path.split('/').slice(1)
  if (!path.startsWith('/') || /\p{Cc}/u.test(path)) throw InvalidRequest(`${place}: must be an absolute path`)
  if (path !== '/' && segments.some((segment) => segment === '' || segment === '.' || segment === '..')) {
    throw InvalidRequest(`${place}: must be a plain path without "//", "." and ".."`)
  }
  const root = SYSTEM_FOLDERS.find((folder) => path === folder || (folder !== '/' && path.startsWith(`${folder}/`)))
  if (root !== undefined || path === '') throw InvalidRequest(`${place}: must not be ${root === path || root === undefined ? '' : 'under '}the system folder ${root ?? '/'}`)
  return path
}
