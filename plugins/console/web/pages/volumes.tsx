// Volumes, and the instances that use them.
import { path } from '../api/call.ts'
import type { Volume } from '../api/types.ts'
import { Button } from '../parts/button.tsx'
import { Time } from '../parts/time.tsx'
import { useLoaded } from '../state/list.ts'
import { href } from '../state/route.ts'
import { ListPage } from './list-page.tsx'
import { askToRemove } from './remove.ts'

export function Volumes () {
  const loaded = useLoaded<readonly Volume[]>('/volumes', ['volume'])
  return (
    <ListPage
      title='Volumes' loaded={loaded} keyOf={({ id }) => id} textOf={({ id, name }) => `${id} ${name}`}
      create={{ verb: 'Create volume', scope: 'volume:write', documented: '/volumes', first: ['name', 'size_gb'] }}
      empty={{ title: 'No volume yet.', text: <p>A volume is a disk that outlives instances. It is attached when an instance is created, or to a stopped one.</p> }}
      columns={[
        { title: 'Name', kind: 'wide', sort: ({ name }) => name, cell: ({ name, id }) => <span title={id}>{name}</span> },
        { title: 'Size', kind: 'number', sort: (row) => row.size_gb, cell: (row) => `${row.size_gb} GB` },
        { title: 'Attached to', cell: ({ attachments }) => attachments.length === 0 ? <span class='quiet'>nothing</span> : attachments.map(({ instance_id: id, mount_path: place, readonly }) => <div key={id}><a href={href(['instances', id])}>{id.slice(0, 12)}</a> at {place}{readonly && ', read-only'}</div>) },
        { title: 'Created', sort: ({ created_at: at }) => at, cell: ({ created_at: at }) => <Time at={at} /> },
        { title: 'Actions', kind: 'actions', cell: ({ id, name, size_gb: size, attachments }) => <Button label={`Delete ${name}`} scope='volume:delete' unless={attachments.length > 0 && 'It is attached; detach it first.'} onPress={() => { askToRemove({ url: path`/volumes/${id}`, name, goes: [`${size} GB with everything on it`], done: loaded.reload }) }}>Delete</Button> }
      ]}
    />
  )
}
