// `volumes` of a service.
import type { Place } from './place.ts'
import type { VolumeModel } from './model.ts'

const MOUNT_FIELDS = ['type', 'source', 'target', 'read_only'] as const
const NO_FOLDERS = 'folders of this host are not supported: a VM has disks of its own; use a named volume, or put the files into the image'

/** The API's `volumes`. */
export function mountsOf (place: Place | undefined, volumes: ReadonlyMap<string, VolumeModel>): object[] {
  return place?.items().map((item) => {
    const { source, target, isReadonly } = item.isMap() ? longForm(item) : shortForm(item)
    const volume = volumes.get(source)
    if (volume === undefined) throw item.refusal(`there is no volume ${source} under volumes`)
    if (!target.startsWith('/')) throw item.refusal('the path in the VM must begin with /')
    return { volume_id: volume.name, mount_path: target, ...isReadonly ? { readonly: true } : {} }
  }) ?? []
}

interface Mount { readonly source: string, readonly target: string, readonly isReadonly: boolean }

function shortForm (item: Place): Mount {
  const [source = '', target, mode, ...more] = item.text().split(':')
  if (/^[./~]/.test(source)) throw item.refusal(target === undefined ? 'volumes without a name are not supported' : NO_FOLDERS)
  if (target === undefined || more.length > 0 || (mode !== undefined && mode !== 'ro' && mode !== 'rw')) throw item.refusal('must be NAME:PATH, NAME:PATH:ro or NAME:PATH:rw')
  return { source, target, isReadonly: mode === 'ro' }
}

function longForm (item: Place): Mount {
  const fields = item.fields(MOUNT_FIELDS)
  const type = fields.get('type')
  if (type !== undefined && type.text() !== 'volume') throw type.refusal(type.text() === 'bind' ? NO_FOLDERS : `${type.text()} is not supported; only volume is`)
  const [source, target] = [fields.get('source'), fields.get('target')]
  if (source === undefined || target === undefined) throw item.refusal('source and target are needed')
  return { source: source.text(), target: target.text(), isReadonly: fields.get('read_only')?.flag() ?? false }
}
