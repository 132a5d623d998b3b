// The table of requests through the proxy: the decisions, and the credentials that were put in.
import type { EgressEntry } from '../../api/types.ts'
import { useState } from 'preact/hooks'
import { Why } from './why.tsx'
import { Button } from '../../parts/button.tsx'
import { bytes, milliseconds } from '../../parts/format.ts'
import { Table, type Column } from '../../parts/table.tsx'
import { Time } from '../../parts/time.tsx'

export interface EgressRow extends EgressEntry { readonly instanceId: string, readonly instanceName: string }

const columnsOf = (explain: (row: EgressRow) => void): ReadonlyArray<Column<EgressRow>> => [
  { title: 'When', cell: ({ time }) => <Time at={time} /> },
  { title: 'Instance', cell: ({ instanceName }) => <span class='whole' title={instanceName}>{instanceName}</span> },
  { title: 'Decision', sort: ({ reason }) => reason ?? '', cell: ({ reason }) => <span class={reason === undefined ? 'state state-good' : 'state state-bad'}><i aria-hidden='true' />{reason === undefined ? 'let through' : `refused: ${reason.replaceAll('_', ' ')}`}</span> },
  { title: 'Why', cell: (row) => row.reason === undefined ? null : <Button label={`Why ${row.host} was refused`} onPress={() => { explain(row) }}>Why</Button> },
  { title: 'Request', kind: 'wide', cell: ({ method, protocol, host, port, path }) => <span class='cut' title={`${host}:${port}${path ?? ''}`}>{method ?? protocol} {host}{path}</span> },
  { title: 'Status', kind: 'number', sort: ({ status }) => status ?? 0, cell: ({ status }) => status ?? '–' },
  { title: 'Credentials', cell: ({ injected }) => injected.length === 0 ? <span class='quiet'>none</span> : injected.join(', ') },
  { title: 'In', kind: 'number', sort: (row) => row.bytes_in, cell: (row) => bytes(row.bytes_in) },
  { title: 'Out', kind: 'number', sort: (row) => row.bytes_out, cell: (row) => bytes(row.bytes_out) },
  { title: 'Took', kind: 'number', sort: (row) => row.duration_ms, cell: (row) => milliseconds(row.duration_ms) }
]

export function EgressTable ({ label, rows, single = false }: { readonly label: string, readonly rows: readonly EgressRow[], readonly single?: boolean }) {
  const [explained, setExplained] = useState<EgressRow | undefined>(undefined)
  const columns = columnsOf(setExplained)
  return (
    <>
      <Table label={label} columns={single ? columns.filter(({ title }) => title !== 'Instance') : columns} rows={rows} keyOf={({ instanceId, seq }) => `${instanceId} ${seq}`} />
      {explained !== undefined && <Why row={explained} onClose={() => { setExplained(undefined) }} />}
    </>
  )
}
