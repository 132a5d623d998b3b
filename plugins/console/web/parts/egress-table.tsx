// Requests through the mediated way out: what was decided, and what went in.
import type { EgressEntry } from '../api/types.ts'
import { bytes, milliseconds } from './format.ts'
import { Table, type Column } from './table.tsx'
import { Time } from './time.tsx'

export interface EgressRow extends EgressEntry { readonly instanceId: string, readonly instanceName: string }

const COLUMNS: ReadonlyArray<Column<EgressRow>> = [
  { title: 'When', cell: ({ time }) => <Time at={time} /> },
  { title: 'Instance', cell: ({ instanceName }) => <span class='whole'>{instanceName}</span> },
  { title: 'Decision', sort: ({ reason }) => reason ?? '', cell: ({ reason }) => <span class={reason === undefined ? 'state state-good' : 'state state-bad'}><i aria-hidden='true' />{reason === undefined ? 'let through' : `refused: ${reason.replaceAll('_', ' ')}`}</span> },
  { title: 'Request', kind: 'wide', cell: ({ method, protocol, host, port, path }) => <span class='cut' title={`${host}:${port}${path ?? ''}`}>{method ?? protocol} {host}{path}</span> },
  { title: 'Status', kind: 'number', sort: ({ status }) => status ?? 0, cell: ({ status }) => status ?? '–' },
  { title: 'Credentials', cell: ({ injected }) => injected.length === 0 ? <span class='quiet'>none</span> : injected.join(', ') },
  { title: 'In', kind: 'number', sort: (row) => row.bytes_in, cell: (row) => bytes(row.bytes_in) },
  { title: 'Out', kind: 'number', sort: (row) => row.bytes_out, cell: (row) => bytes(row.bytes_out) },
  { title: 'Took', kind: 'number', sort: (row) => row.duration_ms, cell: (row) => milliseconds(row.duration_ms) }
]

export function EgressTable ({ label, rows, single = false }: { readonly label: string, readonly rows: readonly EgressRow[], readonly single?: boolean }) {
  return <Table label={label} columns={single ? COLUMNS.filter(({ title }) => title !== 'Instance') : COLUMNS} rows={rows} keyOf={({ instanceId, seq }) => `${instanceId} ${seq}`} />
}
