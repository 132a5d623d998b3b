// Builds of images, with their logs.
import { useState } from 'preact/hooks'
import { path } from '../api/call.ts'
import type { Build } from '../api/types.ts'
import { Button } from '../parts/button.tsx'
import { milliseconds } from '../parts/format.ts'
import { State } from '../parts/state.tsx'
import { Time } from '../parts/time.tsx'
import { useLoaded } from '../state/list.ts'
import { BuildDialog } from './builds/build-dialog.tsx'
import { BuildLog } from './build-log.tsx'
import { ListPage } from './list-page.tsx'
import { askToRemove } from './remove.ts'

const UNDER_WAY = new Set(['queued', 'building', 'pushing'])

export function Builds () {
  const loaded = useLoaded<readonly Build[]>('/builds', ['build'])
  const [shown, setShown] = useState<Build | undefined>(undefined)
  const [isAsking, setAsking] = useState(false)
  return (
    <>
      <ListPage
        title='Builds' loaded={loaded} keyOf={({ id }) => id} textOf={({ id, image_ref: image, status }) => `${id} ${image ?? ''} ${status}`}
        empty={{ title: 'No build yet.', text: <p>Build an image from a folder with a Dockerfile, here or with <code>berth build FOLDER -t NAME</code>.</p> }}
        actions={<Button kind='primary' scope='build:write' onPress={() => { setAsking(true) }}>Build an image</Button>}
        columns={[
          { title: 'Build', kind: 'wide', cell: ({ id, image_ref: image }) => <><code>{id.slice(0, 12)}</code> {image}</> },
          { title: 'Status', sort: ({ status }) => status, cell: ({ status, error }) => <><State value={status} reason={error} />{error !== null && <span class='fault'> {error}</span>}</> },
          { title: 'Took', kind: 'number', cell: ({ duration_ms: duration }) => milliseconds(duration) },
          { title: 'Begun', sort: ({ created_at: at }) => at, cell: ({ created_at: at }) => <Time at={at} /> },
          { title: 'Actions', kind: 'actions', cell: (build) => <><Button label={`Log of ${build.id}`} onPress={() => { setShown(build) }}>Log</Button><Button label={`${UNDER_WAY.has(build.status) ? 'Cancel' : 'Delete'} ${build.id}`} scope='build:delete' onPress={() => { askToRemove({ url: path`/builds/${build.id}`, name: `build ${build.id.slice(0, 12)}`, goes: ['The build and its log; an image that it made stays'], verb: UNDER_WAY.has(build.status) ? 'Cancel' : 'Delete', done: loaded.reload }) }}>{UNDER_WAY.has(build.status) ? 'Cancel' : 'Delete'}</Button></> }
        ]}
      />
      {isAsking && <BuildDialog onClose={() => { setAsking(false) }} onBegun={(build) => { setAsking(false); loaded.reload(); setShown(build) }} />}
      {shown !== undefined && <BuildLog build={loaded.data.value?.find(({ id }) => id === shown.id) ?? shown} onClose={() => { setShown(undefined) }} />}
    </>
  )
}
