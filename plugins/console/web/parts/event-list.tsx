// Events, newest first.
import type { ApiEvent } from '../api/types.ts'
import { Table, type Column } from './table.tsx'
import { State } from './state.tsx'
import { Time } from './time.tsx'

const COLUMNS: ReadonlyArray<Column<ApiEvent>> = [
  { title: 'When', cell: ({ timestamp }) => <Time at={timestamp} /> },
  { title: 'Event', cell: ({ type }) => type },
  { title: 'Of', kind: 'wide', cell: ({ data }) => data?.name ?? data?.id ?? '' },
  { title: 'State', cell: ({ data }) => data === undefined ? null : <State value={data.status} /> }
]

export function EventList ({ label, events }: { readonly label: string, readonly events: readonly ApiEvent[] }) {
  return <Table label={label} columns={COLUMNS} rows={events} keyOf={({ id, type, data }) => id ?? `${type} ${data?.id ?? ''}`} />
}
