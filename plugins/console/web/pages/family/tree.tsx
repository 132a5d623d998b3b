// The tree itself. Keyboards and screen readers use the list of links behind it; the lines are only drawn.
import { hierarchy, tree, type HierarchyPointNode } from 'd3-hierarchy'
import { State } from '../../parts/state.tsx'
import { Actions, type Opened } from './actions.tsx'
import { rootsOf, type Facts, type Node } from './nodes.ts'
import { linkOf, noteOf, titleOf, type Promised } from './text.ts'

interface FamilyProps {
  readonly facts: Facts
  readonly promised: Promised
  readonly open: (opened: Opened) => void
  readonly reload: () => void
}

const ROW = 56
const COLUMN = 400
/** As an indented list, what is deeper stands no further in. */
const DEEPEST = 6

export function FamilyTree ({ facts, promised, open, reload }: FamilyProps) {
  const root = hierarchy<Node>({ kind: 'group', key: '', title: '', note: '', children: rootsOf(facts) }, ({ children }) => [...children])
  const placed: Array<HierarchyPointNode<Node>> = []
  // Each before what came from it: so it is read aloud, and so it stands on a narrow screen, where the style makes it an indented list.
  tree<Node>().nodeSize([ROW, COLUMN]).separation(() => 1)(root).eachBefore((node) => { if (node.depth > 0) placed.push(node) })
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
      <ul>{placed.map(({ data, x, y, depth, parent }) => {
        const [title, note, link] = [titleOf(data), noteOf(data, promised), linkOf(data)]
        return (
          <li key={data.key} style={{ left: `${left(y)}px`, top: `${x - top}px`, width: `${COLUMN - 40}px`, '--depth': Math.min(depth - 1, DEEPEST) }}>
            <span class='cut' title={title}>{depth > 1 && parent !== null && <span class='unseen'>of {titleOf(parent.data)}: </span>}{link === undefined ? title : <a href={link}>{title}</a>}</span>
            <span class='quiet' title={note}>{data.kind === 'instance' && <State value={data.instance.state} />} {note}</span>
            <span class='node-actions'><Actions node={data} open={open} reload={reload} /></span>
          </li>
        )
      })}
      </ul>
    </div>
    </div>
  )
}
