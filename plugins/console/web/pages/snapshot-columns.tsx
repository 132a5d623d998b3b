// The columns and actions of a snapshot.
import { useState } from 'preact/hooks'
import { path } from '../api/call.ts'
import type { Snapshot } from '../api/types.ts'
import { Button } from '../parts/button.tsx'
import { bytes } from '../parts/format.ts'
import type { Column } from '../parts/table.tsx'
import { Time } from '../parts/time.tsx'
import { href } from '../state/route.ts'
import { ForkSnapshot } from './fork-snapshot.tsx'
import { askToRemove } from './remove.ts'

export function useSnapshotColumns (reload: () => void) {
  const [forking, setForking] = useState<Snapshot | undefined>(undefined)
  const title = ({ name, id }: Snapshot): string => name ?? id.slice(0, 12)
  const columns: ReadonlyArray<Column<Snapshot>> = [
    { title: 'Name', kind: 'wide', cell: (snapshot) => <span title={snapshot.id}>{title(snapshot)}</span> },
    { title: 'Kind', sort: ({ kind }) => kind, cell: ({ kind }) => kind === 'Standby' ? 'with memory' : 'disk only' },
    { title: 'Of', sort: (row) => row.source_instance_name, cell: (row) => <a href={href(['instances', row.source_instance_id])}>{row.source_instance_name}</a> },
    { title: 'Size', kind: 'number', sort: (row) => row.size_bytes, cell: (row) => <>{bytes(row.size_bytes)}{row.compression_state === 'compressed' && <span class='quiet'> memory in {bytes(row.compressed_size_bytes)}</span>}</> },
    { title: 'Taken', sort: (row) => row.created_at, cell: (row) => <Time at={row.created_at} /> },
    {
      title: 'Actions', kind: 'actions', cell: (row) => <>
        <Button label={`Fork ${title(row)}`} scope='instance:write' onPress={() => { setForking(row) }}>Fork</Button>
        <Button label={`Delete ${title(row)}`} scope='snapshot:delete' onPress={() => { askToRemove({ url: path`/snapshots/${row.id}`, name: `snapshot ${title(row)}`, goes: [`${bytes(row.size_bytes)} of ${row.kind === 'Standby' ? 'memory and disk' : 'disk'}; instances that were made from it stay`], done: reload }) }}>Delete</Button>
      </>
    }
  ]
  const dialog = forking === undefined ? null : <ForkSnapshot snapshot={forking} onClose={() => { setForking(undefined) }} />
  return { columns, dialog }
}
