// Keys: their scopes, and when they expire. A new key is shown once.
import { useState } from 'preact/hooks'
import { path } from '../api/call.ts'
import { Button } from '../parts/button.tsx'
import { Copy } from '../parts/copy.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { State } from '../parts/state.tsx'
import { Time } from '../parts/time.tsx'
import { useLoaded } from '../state/list.ts'
import { sessionKey } from '../state/session.ts'
import { ListPage } from './list-page.tsx'
import { askToRemove } from './remove.ts'

interface Key { readonly id: string, readonly name: string, readonly scopes: readonly string[], readonly status: string, readonly created_at: string, readonly expires_at: string | null, readonly last_used_at: string | null }

export function Keys () {
  const loaded = useLoaded<readonly Key[]>('/keys', [])
  const [made, setMade] = useState<string | undefined>(undefined)
  return (
    <>
      <ListPage
        title='Keys' loaded={loaded} keyOf={({ id }) => id} textOf={({ id, name, scopes, status }) => `${id} ${name} ${scopes.join(' ')} ${status}`}
        create={{ verb: 'Make a key', scope: 'key:write', documented: '/keys', first: ['name', 'scopes', 'expires_in'], onMade: (answer) => { setMade((answer as { readonly key: string }).key) } }}
        empty={{ title: 'No stored key.', text: <p>Make one for each person and program; it can do no more than this session.</p> }}
        columns={[
          { title: 'Name', kind: 'wide', sort: ({ name }) => name, cell: ({ name, id }) => <span title={id}>{name}{id === sessionKey.value?.id && <span class='tag'>this session</span>}</span> },
          { title: 'Scopes', kind: 'wide', cell: ({ scopes }) => scopes.includes('*') ? 'everything' : <span class='cut' title={scopes.join(', ')}>{scopes.join(', ')}</span> },
          { title: 'Status', sort: ({ status }) => status, cell: ({ status }) => <State value={status} /> },
          { title: 'Last used', sort: (row) => row.last_used_at ?? '', cell: (row) => <Time at={row.last_used_at} /> },
          { title: 'Expires', cell: (row) => row.expires_at === null ? <span class='quiet'>never</span> : <Time at={row.expires_at} /> },
          { title: 'Actions', kind: 'actions', cell: ({ id, name, status }) => <Button label={`Revoke ${name}`} scope='key:write' unless={status !== 'active' && `It is ${status}.`} onPress={() => { askToRemove({ url: path`/keys/${id}`, name: `key ${name}`, goes: ['Every use of it, at once: streams and terminals that are open with it, and sessions of this console', ...id === sessionKey.value?.id ? ['This very session: you will be logged out'] : []], verb: 'Revoke', done: loaded.reload }) }}>Revoke</Button> }
        ]}
      />
      {made !== undefined && <Dialog title='The new key' onClose={() => { setMade(undefined) }}><p>It is shown now and never again: the server keeps only its hash.</p><Copy label='key' text={made} /></Dialog>}
    </>
  )
}
