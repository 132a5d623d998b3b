// The tree itself. Keyboards and screen readers use the list of links behind it; the lines are only drawn.
import { hierarchy, tree } from 'd3-hierarchy'
import { Button } from '../../parts/button.tsx'
import { unforkable } from '../fork-instance.tsx'
import { askToDelete } from '../instance-actions.ts'
import type { Image, Instance, Snapshot } from '../../api/types.ts'
import { bytes } from '../../parts/format.ts'
import { State } from '../../parts/state.tsx'
import { href } from '../../state/route.ts'

interface Node { readonly key: string, readonly title: string, readonly note: string, readonly state?: string, readonly link?: string, readonly instance?: Instance, readonly children: readonly Node[] }

interface FamilyProps {
  readonly images: readonly Image[]
  readonly instances: readonly Instance[]
  readonly snapshots: readonly Snapshot[]
  readonly onFork: (instance: Instance) => void
  readonly taken: ReadonlyMap<string, { readonly memory_bytes: number, readonly disk_bytes: number }>
}

const ROW = 48
const COLUMN = 360

export function FamilyTree (props: FamilyProps) {
  const root = hierarchy<Node>({ key: '', title: '', note: '', children: rootsOf(props) }, ({ children }) => [...children])
  const placed = tree<Node>().nodeSize([ROW, COLUMN]).separation(() => 1)(root).descendants().filter(({ depth }) => depth > 0)
  const top = Math.min(...placed.map(({ x }) => x), 0)
  const height = Math.max(...placed.map(({ x }) => x), 0) - top + ROW
  const width = Math.max(...placed.map(({ y }) => y), COLUMN)
  const left = (y: number): number => y - COLUMN
  return (
    <div class='family' role='region' aria-label='Family tree' tabIndex={0}><div style={{ position: 'relative', width: `${width}px`, height: `${height}px` }}>
      <svg width={width} height={height} aria-hidden='true'>{placed.filter(({ depth }) => depth > 1).map((node) => {
        const from = { x: left(node.parent?.y ?? 0) + COLUMN - 40, y: (node.parent?.x ?? 0) - top + ROW / 2 }
        const to = { x: left(node.y), y: node.x - top + ROW / 2 }
        return <path key={node.data.key} d={`M${from.x},${from.y} C${from.x + 20},${from.y} ${to.x - 20},${to.y} ${to.x},${to.y}`} />
      })}
      </svg>
      <ul>{placed.map(({ data, x, y, depth }) => <li key={data.key} style={{ left: `${left(y)}px`, top: `${x - top}px`, width: `${COLUMN - 40}px` }} class={`depth-${depth}`}>
        <span class='cut' title={data.title}>{data.link === undefined ? data.title : <a href={data.link}>{data.title}</a>}</span><span class='quiet'>{data.state !== undefined && <State value={data.state} />} {data.note}</span>{data.instance !== undefined && <Actions instance={data.instance} onFork={props.onFork} />}
                                                 </li>)}
      </ul>
    </div>
    </div>
  )
}

function Actions ({ instance, onFork }: { readonly instance: Instance, readonly onFork: (instance: Instance) => void }) {
  return (
    <span class='node-actions'>
      <Button label={`Fork ${instance.name}`} scope='instance:write' unless={unforkable(instance)} onPress={() => { onFork(instance) }}>Fork</Button>
      <Button label={`Delete ${instance.name}`} scope='instance:write' onPress={async () => { await askToDelete([instance], () => undefined) }}>Delete</Button>
    </span>
  )
}

function rootsOf ({ images, instances, snapshots, taken }: Omit<FamilyProps, 'onFork'>): Node[] {
  const known = new Set(images.map(({ name }) => name))
  const ids = new Set(instances.map(({ id }) => id))
  const snapshotNode = (snapshot: Snapshot): Node => ({ key: snapshot.id, title: snapshot.name ?? snapshot.id.slice(0, 12), note: `snapshot, ${bytes(snapshot.size_bytes)}`, link: href(['snapshots'], { q: snapshot.id }), children: [] })
  const instanceNode = (instance: Instance): Node => {
    const { id, name, state } = instance
    const own = taken.get(id)
    return { key: id, title: name, state, instance, note: own === undefined ? '' : `${bytes(own.memory_bytes)} memory, ${bytes(own.disk_bytes)} disk`, link: href(['instances', id]), children: snapshots.filter(({ source_instance_id: source }) => source === id).map(snapshotNode) }
  }
  const orphans = snapshots.filter(({ source_instance_id: source }) => !ids.has(source))
  return [
    ...images.map(({ name, size_bytes: size }) => {
      const own = instances.filter(({ image }) => image === name)
      return { key: name, title: name, note: `${bytes(size)}, shared by ${own.length}`, link: href(['images'], { q: name }), children: own.map(instanceNode) }
    }),
    ...[...new Set(instances.map(({ image }) => image))].filter((image) => !known.has(image)).map((image) => ({ key: image, title: image, note: 'known under this name no more', children: instances.filter((each) => each.image === image).map(instanceNode) })),
    ...orphans.length === 0 ? [] : [{ key: ' orphans', title: 'Instances that are gone', note: 'their snapshots stay', children: orphans.map(snapshotNode) }]
  ]
}
