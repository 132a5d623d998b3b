// Snapshots: saved states of instances, from which others can be made.
import type { Snapshot } from '../api/types.ts'
import { useLoaded } from '../state/list.ts'
import { ListPage } from './list-page.tsx'
import { useSnapshotColumns } from './snapshot-columns.tsx'

export function Snapshots () {
  const loaded = useLoaded<readonly Snapshot[]>('/snapshots', ['snapshot'])
  const { columns, dialog } = useSnapshotColumns(loaded.reload)
  return (
    <ListPage
      title='Snapshots' loaded={loaded} keyOf={({ id }) => id} textOf={({ id, name, source_instance_name: source }) => `${id} ${name ?? ''} ${source}`} columns={columns}
      empty={{ title: 'No snapshot yet.', text: <p>Take one on the page of an instance, at Snapshots, or let a schedule there take them.</p> }}
    >{dialog}
    </ListPage>
  )
}
