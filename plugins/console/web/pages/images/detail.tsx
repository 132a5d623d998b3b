// An image from within: its layers, what it shares, and what uses it.
import { path } from '../../api/call.ts'
import type { Build, Image, ImageDetails, Instance, Snapshot } from '../../api/types.ts'
import { Dialog } from '../../parts/dialog.tsx'
import { bytes } from '../../parts/format.ts'
import { Problem } from '../../parts/problem.tsx'
import { Table } from '../../parts/table.tsx'
import { Wait } from '../../parts/wait.tsx'
import { useLoaded } from '../../state/list.ts'
import { href } from '../../state/route.ts'

type Detailed = Image & { readonly details: ImageDetails | null }

export function ImageDetail ({ image: { name }, onClose }: { readonly image: Pick<Image, 'name'>, readonly onClose: () => void }) {
  const loaded = useLoaded<Detailed>(`${path`/images/${name}`}?details=true`, ['image', 'instance', 'snapshot'])
  const image = loaded.data.value
  const { reload } = loaded
  const details = image?.details
  return (
    <Dialog title={name} onClose={onClose} wide>
      {loaded.error.value !== '' && <Problem text={loaded.error.value} onRetry={reload} />}
      {image === undefined ? loaded.error.value === '' && <Wait what='the image' /> : details == null ? <p>Its digest is not known yet.</p> : <>
        <Facts image={image} details={details} />
        <Layers details={details} />
                                                                                                             </>}
    </Dialog>
  )
}

function Facts ({ image: { name, digest }, details }: { readonly image: Image, readonly details: ImageDetails }) {
  const others = details.names.filter((each) => each !== name)
  return (
    <dl class='facts'>
      <dt>Digest</dt><dd><code>{digest}</code></dd>
      <dt>On this disk</dt><dd>{bytes(details.disk_bytes)}: one root file system for all its names and instances, of which no other image has a part</dd>
      <dt>Layers</dt><dd>{bytes(details.compressed_bytes)} as transferred{details.own_compressed_bytes !== null && `: ${bytes(details.shared_compressed_bytes)} in other images here, too, and ${bytes(details.own_compressed_bytes)} its own. A registry keeps what is shared once`}</dd>
      <dt>Other names</dt><dd>{others.length === 0 ? <span class='quiet'>none</span> : others.join(', ')}</dd>
      <dt>Used by</dt><dd><Users digest={digest} details={details} /></dd>
    </dl>
  )
}

function Users ({ digest, details: { used_by: { total, holders } } }: { readonly digest: string, readonly details: ImageDetails }) {
  const instances = useLoaded<readonly Instance[]>('/instances', ['instance'])
  const snapshots = useLoaded<readonly Snapshot[]>('/snapshots', ['snapshot'])
  // Without the plugin there are none.
  const builds = useLoaded<readonly Build[]>('/builds', ['build'])
  const nameOf = (id: string): string => instances.data.value?.find((each) => each.id === id)?.name ?? snapshots.data.value?.find((each) => each.id === id)?.name ?? id.slice(0, 12)
  const made = (builds.data.value ?? []).filter(({ image_digest: each }) => each === digest)
  const shown = holders.slice(0, 50)
  return (
    <>
      {total === 0 && <span class='quiet'>no instance and no snapshot </span>}
      {shown.map(({ kind, id }, index) => <span key={`${kind} ${id}`}>{index > 0 && ', '}{kind} <a href={kind === 'snapshot' ? href(['snapshots'], { q: id }) : href(['instances', id])}>{nameOf(id)}</a></span>)}
      {total > shown.length && ` and ${total - shown.length} more`}
      {made.map(({ id }) => <span key={id}>; made by build <a href={href(['builds'], { q: id })}>{id.slice(0, 12)}</a></span>)}
    </>
  )
}

function Layers ({ details: { layers, layer_count: count } }: { readonly details: ImageDetails }) {
  if (layers === null) return <p class='quiet'>Its layers are not known: it was pulled before they were kept. Pull it again, and they are.</p>
  const rows = layers.map((layer, place) => ({ ...layer, place }))
  return (
    <>
      <h2>{count} layer{count === 1 ? '' : 's'}, the lowest first</h2>
      <Table
        label='Layers' rows={rows} keyOf={({ place }) => String(place)} columns={[
          { title: 'Made by', kind: 'wide', cell: ({ created_by: command, digest, media_type: type }) => <><code>{command ?? 'not said'}</code> <span class='quiet cut' title={`${digest} ${type ?? ''}`}>{digest.slice(0, 19)}</span></> },
          { title: 'Size', kind: 'number', sort: ({ size_bytes: size }) => size, cell: ({ size_bytes: size }) => bytes(size) },
          { title: 'Also in', kind: 'number', sort: ({ shared_by: others }) => others, cell: ({ shared_by: others }) => others === 0 ? <span class='quiet'>no other</span> : `${others} image${others === 1 ? '' : 's'}` }
        ]}
      />
      {count !== null && count > layers.length && <p class='quiet'>Of the {count - layers.length} others only the number is known.</p>}
    </>
  )
}
