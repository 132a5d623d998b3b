// Rows with a heading each; on narrow screens each row is a card. Long lists are shown in parts.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'

export interface Column<T> {
  readonly title: string
  readonly cell: (row: T) => ComponentChildren
  readonly kind?: 'number' | 'wide' | 'actions'
  readonly sort?: (row: T) => string | number
}

interface TableProps<T> {
  readonly label: string
  readonly columns: ReadonlyArray<Column<T>>
  readonly rows: readonly T[]
  readonly keyOf: (row: T) => string
  readonly selection?: { readonly chosen: ReadonlySet<string>, readonly nameOf: (row: T) => string, readonly choose: (ids: ReadonlySet<string>) => void }
}

const PART = 100

export function Table<T> ({ label, columns, rows, keyOf, selection }: TableProps<T>) {
  const [shown, setShown] = useState(PART)
  const [order, setOrder] = useState<{ readonly title: string, readonly down: boolean } | undefined>(undefined)
  const by = columns.find(({ title }) => title === order?.title)?.sort
  const sorted = by === undefined ? rows : [...rows].sort((a, b) => compare(by(a), by(b)) * (order?.down === true ? -1 : 1))
  const visible = sorted.slice(0, shown)
  const toggle = (id: string, isChosen: boolean): void => {
    const next = new Set(selection?.chosen)
    if (isChosen) next.add(id)
    else next.delete(id)
    selection?.choose(next)
  }
  return (
    <div class='table-frame'>
      <table aria-label={label}>
        <thead><tr>
          {selection !== undefined && <th class='choose'><input type='checkbox' aria-label='Select all' checked={rows.length > 0 && rows.every((row) => selection.chosen.has(keyOf(row)))} onChange={(event) => { selection.choose(new Set(event.currentTarget.checked ? rows.map(keyOf) : [])) }} /></th>}
          {columns.map((column) => <th key={column.title} class={column.kind} scope='col' aria-sort={order?.title === column.title ? order.down ? 'descending' : 'ascending' : undefined}>
            {column.sort === undefined ? column.kind === 'actions' ? <span class='unseen'>{column.title}</span> : column.title
              : <button type='button' class='sort' onClick={() => { setOrder({ title: column.title, down: order?.title === column.title && !order.down }) }}>{column.title}<span aria-hidden='true'>{order?.title === column.title ? order.down ? ' ↓' : ' ↑' : ''}</span></button>}
          </th>)}
               </tr>
        </thead>
        <tbody>{visible.map((row) => {
          const id = keyOf(row)
          return (
            <tr key={id} class={selection?.chosen.has(id) === true ? 'chosen' : undefined}>
              {selection !== undefined && <td class='choose'><input type='checkbox' aria-label={`Select ${selection.nameOf(row)}`} checked={selection.chosen.has(id)} onChange={(event) => { toggle(id, event.currentTarget.checked) }} /></td>}
              {columns.map((column) => <td key={column.title} class={column.kind} data-title={column.title}>{column.cell(row)}</td>)}
            </tr>
          )
        })}
        </tbody>
      </table>
      {rows.length > shown && <p class='more'><button type='button' class='button plain' onClick={() => { setShown(shown + PART) }}>Show {Math.min(PART, rows.length - shown)} more of {rows.length}</button></p>}
    </div>
  )
}

function compare (a: string | number, b: string | number): number {
  return typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b), undefined, { numeric: true })
}
